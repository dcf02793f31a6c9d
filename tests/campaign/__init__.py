"""The campaign: hostile, damaged and senseless inputs by the hundred thousand, interruptions, full disks.

``make campaign`` takes minutes, ``make campaign-long`` goes on for hours, from where it was; ``python -m campaign --help`` (with
``tests`` on the path) has the rest. Counts and finds, with their seeds, are kept in ``build/campaign/report.json``.

A *fuzzer* is a class with a name, ``prepare``, and ``one(seed)``, which makes one input of the seed, tries it and says in a word
how it ended. It raises `Find` for what should not be; every exception but those that a user is meant to see is one too. Fuzzers
run in a process of their own (`campaign.worker`), which may die: the next begins behind the seed that it died of.
"""


class Find(Exception):
    """Something that should not be."""
