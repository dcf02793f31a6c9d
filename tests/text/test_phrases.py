"""Phrases in a text, against looking at every span."""

import numpy as np
import pytest

from partwise.text.columns import code_tokens
from partwise.text.phrases import PhraseTable


def test_spans_are_those_of_a_search_through_all():
    rng = np.random.default_rng(0)
    sentences = [[(word,) for word in rng.choice(list("abC"), n)] for n in (0, 1, 5, 9)]
    phrases = {tuple(rng.choice(list("abc"), n)): ["x"] for n in (1, 2, 2, 3, 3, 4) for _ in range(2)}
    table, columns = PhraseTable(phrases, ["x"]), code_tokens(sentences)
    spans, found = table.find(columns), []
    for i, sentence in enumerate(sentences):
        lower = [word.lower() for (word,) in sentence]
        for a in range(len(lower)):
            for b in range(a + 1, len(lower) + 1):
                if tuple(lower[a:b]) in phrases:
                    found.append((int(columns.starts[i]) + a, b - a, tuple(lower[a:b])))
    assert list(zip(spans.first.tolist(), spans.length.tolist(), [table.phrases[k] for k in spans.phrase], strict=True)) == found


def test_a_table_survives_a_file_and_nothing_is_taken_on_trust():
    table = PhraseTable({("New", "York"): ["LOC", "ORG"], ("york",): ["PER"]}, ["LOC", "ORG", "PER"])
    kinds, tensors = table.to_state()
    again = PhraseTable.from_state(kinds, tensors)
    assert again.phrases == table.phrases and (again.member == table.member).all()
    with pytest.raises(ValueError, match="wrong shape"):
        PhraseTable.from_state(kinds, {**tensors, "phrase_kinds": tensors["phrase_kinds"][:1]})
    with pytest.raises(ValueError, match="not a list of strings"):
        PhraseTable.from_state([1], tensors)


def test_without_phrases_nothing_is_found():
    spans = PhraseTable({}, []).find(code_tokens([[("a",)]]))
    assert not len(spans.first)
