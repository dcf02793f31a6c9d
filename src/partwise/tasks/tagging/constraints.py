"""Constraints on labellings: forbidden transitions and labels, and the chunking schemes by name.

A constraint is

- a list of forbidden pairs ``(label, next label)``; None as the first is the beginning, as the second the end of a sequence;
- the name of a scheme (see `partwise.text.chunk_schemes`), ``"iob1" "iob2" "iobes" "bilou"``, for labels like ``B-NP I-NP O``;
- or a dict with any of ``"forbid"`` (pairs), ``"force"`` (pairs: after a label that is named, only what is named with it may
  come), ``"forbid_start"``, ``"forbid_stop"``, ``"allow_labels"`` (lists of labels) and ``"scheme"``.

Whatever the form, it ends as a list of forbidden transitions between label numbers, which oracles see as real -inf.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from partwise.features.given_labels import numbering
from partwise.tasks.common.label_arrays import shown
from partwise.text.chunk_schemes import OUTSIDE, SCHEMES, may_follow, split_label

Transition = tuple[int | None, int | None]
KEYS = ("forbid", "force", "forbid_start", "forbid_stop", "allow_labels", "scheme")
FORM = (
    f"The 'constraints' parameter of {{who}} must be None, a list of forbidden pairs of labels, one of "
    f"{', '.join(map(repr, SCHEMES))}, or a dict with keys among {', '.join(map(repr, KEYS))}. Got {{got}} instead."
)


def forbidden_transitions(constraints: Any, classes: np.ndarray, who: str) -> list[Transition]:
    """The transitions that `constraints` forbid, as pairs of places in `classes` (None: the beginning or the end)."""
    if constraints is None:
        return []
    if isinstance(constraints, str):
        constraints = {"scheme": constraints}
    elif not isinstance(constraints, Mapping):
        constraints = {"forbid": constraints}
    if not set(constraints) <= set(KEYS):
        raise ValueError(FORM.format(who=who, got=repr(dict(constraints))))
    number = numbering(classes)

    def find(label: Any, outside: bool = False) -> int | None:
        if outside and label is None:
            return None
        if label not in number:
            raise ValueError(
                f"The 'constraints' parameter of {who} names {label!r}, which is not one of the labels {shown(classes)}."
            )
        return number[label]

    def read(key: str) -> list[Transition]:
        for pair in constraints.get(key, ()):
            if not (isinstance(pair, tuple | list) and len(pair) == 2):
                raise ValueError(FORM.format(who=who, got=f"a list with {pair!r}"))
        return [(find(before, True), find(after, True)) for before, after in constraints.get(key, ())]

    pairs, forced = read("forbid"), read("force")
    for a in {before for before, _ in forced}:
        after: list[int | None] = [None, *range(len(classes))] if a is not None else list(range(len(classes)))
        pairs += [(a, b) for b in after if (a, b) not in forced]
    pairs += [(None, find(label)) for label in constraints.get("forbid_start", ())]
    pairs += [(find(label), None) for label in constraints.get("forbid_stop", ())]
    if "allow_labels" in constraints:
        allowed = {find(label) for label in constraints["allow_labels"]}
        before: list[int | None] = [None, *range(len(classes))]
        pairs += [(a, b) for b in range(len(classes)) if b not in allowed for a in before]
    if "scheme" in constraints:
        pairs += scheme_transitions(constraints["scheme"], classes.tolist(), who)
    return sorted(set(pairs), key=lambda pair: tuple(-1 if k is None else k for k in pair))


def scheme_transitions(scheme: Any, labels: list[Any], who: str) -> list[Transition]:
    """What a chunking scheme (see `partwise.text.chunk_schemes`) forbids."""
    if not isinstance(scheme, str) or scheme not in SCHEMES:
        raise ValueError(FORM.format(who=who, got=repr(scheme)))
    prefixes = sorted(set(SCHEMES[scheme].letters))
    parsed: list[tuple[str, str]] = []
    for label in labels:
        one = split_label(label)
        if one is None or one[0] not in (OUTSIDE, *prefixes):
            raise ValueError(
                f"The scheme {scheme!r} in the 'constraints' parameter of {who} knows the label 'O' and the prefixes "
                f"{', '.join(repr(p + '-') for p in prefixes)}. Got the label {label!r}."
            )
        parsed.append(one)
    places: list[int | None] = [*range(len(labels)), None]  # None: the beginning or the end, which are outside
    parsed.append((OUTSIDE, ""))
    return [
        (a, b)
        for a, before in zip(places, parsed, strict=True)
        for b, after in zip(places, parsed, strict=True)
        if not may_follow(scheme, before[0], after[0], before[1] == after[1])
    ]


def check_gold(forbidden: list[Transition], gold: np.ndarray, starts: np.ndarray, classes: np.ndarray, place: Any = None) -> None:
    """Raise, naming sequence and token, if a gold labelling does what is forbidden.

    Tokens with no label, or with several, are passed over. `place` is a function from a token's number to words, to say more.
    """
    if not forbidden or not len(gold):
        return
    n = len(classes)
    barred = np.zeros((n + 2, n + 2), bool)  # labels, outside, and anything: nothing is barred there
    for a, b in forbidden:
        barred[n if a is None else a, n if b is None else b] = True
    first, last = starts[:-1][np.diff(starts) > 0], starts[1:][np.diff(starts) > 0] - 1
    codes = np.where(gold < n, gold, n + 1)
    before = np.concatenate([[n], codes[:-1]])
    before[first] = n
    wrong = barred[before, codes]
    wrong[last] |= barred[codes[last], n]
    if wrong.any():
        t = int(np.argmax(wrong))
        i = int(np.searchsorted(starts, t, side="right")) - 1
        ends = not barred[before[t], codes[t]]
        source = repr(classes.tolist()[codes[t] if ends else before[t]]) if ends or before[t] < n else "the beginning"
        target = "the end" if ends else repr(classes.tolist()[codes[t]])
        more = f" ({place(t)})" if place is not None else ""
        raise ValueError(
            f"The labels of sequence {i} violate the constraints at token {t - starts[i]}{more}: from {source} to {target} is "
            "forbidden. Correct the labels or the 'constraints' parameter."
        )
