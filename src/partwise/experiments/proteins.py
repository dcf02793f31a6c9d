"""Alignments of proteins for experiments: pairs whose columns are known, which of these are reliable, and families.

Where the columns come from superposed structures, those that are far apart, or that other programs align otherwise, do not count.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

#: data set: its files below the data folder
FILES = {
    "balibase": ("protein_balibase3/pairs.tsv.gz",),
    "homstrad": ("protein_homstrad/pairs.tsv.gz",),
    "tmalign": ("protein_tmalign/pairs_valid.tsv.gz", "protein_tmalign/pairs_test.tsv.gz"),
}
ALIGNER = "usalign"  #: of HOMSTRAD's pairs, whose columns they are; the other programs have a say in which are reliable
SCORE = 0.5  #: TM-score above which two chains have the same fold
LONGEST = 500  #: residues of a chain


@functools.lru_cache(maxsize=3)
def read_set(data: Path, name: str, most: int) -> Any:
    """Pairs with families; at most so many of each family, drawn once and for all, and none without a reliable column."""
    import numpy as np

    from partwise.tasks.alignment.files import read_alignments

    parts = [read_alignments(data / file, aligned=True) for file in FILES[name]]
    pairs: Any
    if name == "balibase":
        pairs = parts[0].take([k for k, kind in enumerate(parts[0].fields["kind"]) if kind == "BBS"])
    elif name == "homstrad":
        pairs = agreed(parts[0])
    else:
        pairs = superposed(parts)
    counts = [int((core & (partners >= 0)).sum()) for core, partners in zip(pairs.core, pairs.partners, strict=True)]
    family, rng, kept = np.array(pairs.fields["family"]), np.random.default_rng(0), []
    for one in sorted(set(family.tolist())):
        own = np.flatnonzero((family == one) & (np.array(counts) > 0))
        kept += sorted(rng.permutation(own)[:most].tolist())
    return pairs.take(kept)


def agreed(pairs: Any) -> Any:
    """One alignment of each pair; its columns are reliable where all programs have them."""
    by_family: dict[str, dict[str, int]] = {}
    for k, (family, tool) in enumerate(zip(pairs.fields["family"], pairs.fields["tool"], strict=True)):
        by_family.setdefault(family, {})[tool] = k
    chosen = [tools[ALIGNER] for tools in by_family.values()]
    core = []
    for tools in by_family.values():
        mine = pairs.partners[tools[ALIGNER]]
        core.append((mine[None] == [pairs.partners[k] for k in tools.values()]).all(0))
    return dataclasses.replace(pairs.take(chosen), core=core)


def superposed(parts: list[Any]) -> Any:
    """Chains of the same fold; columns are reliable where their residues are close. Pairs that share a chain are a family."""
    import numpy as np

    from partwise.tasks.alignment.files import AlignedPairs

    fields = {name: [value for part in parts for value in part.fields[name]] for name in parts[0].fields}
    first, second, partners = ([x for part in parts for x in getattr(part, name)] for name in ("first", "second", "partners"))
    core = [np.array([state == ":" for state in states if state != "2"], bool) for states in fields["states"]]
    scores = [max(float(a), float(b)) for a, b in zip(fields["tm1"], fields["tm2"], strict=True)]
    fields["family"] = families(fields["id1"], fields["id2"])
    pairs = AlignedPairs(first, second, partners, core, fields, [line for part in parts for line in part.lines], "TM-align")
    return pairs.take([k for k, score in enumerate(scores) if score > SCORE and max(pairs.lengths[k]) <= LONGEST])


def families(first: list[str], second: list[str]) -> list[str]:
    """A name for each pair, the same for pairs that are connected by chains they have in common."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for a, b in zip(first, second, strict=True):
        leader[find(a)] = find(b)
    return [find(a) for a in first]


def parts_of(pairs: Any, n: int, seed: int) -> Any:
    """(pairs,) which of n parts each pair is in; families stay together."""
    import numpy as np

    names = sorted(set(pairs.fields["family"]))
    part = {names[k]: place % n for place, k in enumerate(np.random.default_rng(seed).permutation(len(names)))}
    return np.array([part[name] for name in pairs.fields["family"]])
