"""Constraints on labellings: forbidden transitions and labels, and the chunking schemes by name.

A constraint is

- a list of forbidden pairs ``(label, next label)``; None as the first is the beginning, as the second the end of a sequence;
- the name of a scheme, ``"iob1" "iob2" "iobes"`` (or ``"bilou"``), for labels like ``B-NP I-NP O``;
- or a dict with any of ``"forbid"`` (pairs), ``"forbid_start"``, ``"forbid_stop"``, ``"allow_labels"`` (lists of labels) and
  ``"scheme"``.

Whatever the form, it ends as a list of forbidden transitions between label numbers, which oracles see as real -inf.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from partwise.estimators.labels import numbering, shown

Transition = tuple[int | None, int | None]
SCHEMES = ("iob1", "iob2", "iobes", "bilou")
KEYS = ("forbid", "forbid_start", "forbid_stop", "allow_labels", "scheme")
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
            if None in number:
                raise ValueError(
                    f"In the 'constraints' parameter of {who}, None stands for the beginning or the end of a sequence, but it is "
                    "also a label here. Use 'forbid_start' and 'forbid_stop'."
                )
            return None
        if label not in number:
            raise ValueError(
                f"The 'constraints' parameter of {who} names {label!r}, which is not one of the labels {shown(classes)}."
            )
        return number[label]

    pairs: list[Transition] = []
    for pair in constraints.get("forbid", ()):
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise ValueError(FORM.format(who=who, got=f"a list with {pair!r}"))
        pairs.append((find(pair[0], True), find(pair[1], True)))
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
    """What a chunking scheme forbids.

    ==========  ====================================================================================================
    iob2        ``I-X`` continues a chunk of type X: only after ``B-X`` or ``I-X``
    iob1        ``B-X`` separates two neighbouring chunks of type X: only after ``B-X`` or ``I-X``; ``I-X`` may begin one
    iobes       chunks are ``S-X`` or ``B-X I-X* E-X`` (bilou: U for S, L for E)
    ==========  ====================================================================================================
    """
    if scheme not in SCHEMES:
        raise ValueError(FORM.format(who=who, got=repr(scheme)))
    prefixes = {"iob1": "BI", "iob2": "BI", "iobes": "BIES", "bilou": "BILU"}[scheme]
    parsed: list[tuple[str, str]] = []
    for label in labels:
        prefix, _, kind = label.partition("-") if isinstance(label, str) else ("", "", "")
        if label != "O" and prefix not in tuple(prefixes):
            raise ValueError(
                f"The scheme {scheme!r} in the 'constraints' parameter of {who} knows the label 'O' and the prefixes "
                f"{', '.join(repr(p + '-') for p in prefixes)}. Got the label {label!r}."
            )
        parsed.append((prefix, kind))
    outside = ("O", "")

    def fits(before: tuple[str, str], after: tuple[str, str]) -> bool:
        same = before[0] != "O" and before[1] == after[1]
        if scheme == "iob2":
            return after[0] != "I" or same
        if scheme == "iob1":
            return after[0] != "B" or same
        unfinished, continues = before[0] in "BI", after[0] in "IEL"
        return (unfinished and continues and same) or (not unfinished and not continues)

    pairs: list[Transition] = []
    for b, after in enumerate(parsed):
        if not fits(outside, after):
            pairs.append((None, b))
        if not fits(after, outside):
            pairs.append((b, None))
        pairs += [(a, b) for a, before in enumerate(parsed) if not fits(before, after)]
    return pairs


def check_gold(forbidden: list[Transition], codes: np.ndarray, starts: np.ndarray, classes: np.ndarray) -> None:
    """Raise, naming sequence and token, if a gold labelling does what is forbidden."""
    if not forbidden or not len(codes):
        return
    n = len(classes)
    barred = np.zeros((n + 1, n + 1), bool)
    for a, b in forbidden:
        barred[n if a is None else a, n if b is None else b] = True
    first, last = starts[:-1][np.diff(starts) > 0], starts[1:][np.diff(starts) > 0] - 1
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
        raise ValueError(
            f"The labels of sequence {i} violate the constraints at token {t - starts[i]}: from {source} to {target} is "
            "forbidden. Correct the labels or the 'constraints' parameter."
        )
