"""`ConstituencyParser`: learning, answers, files, errors. All in the interpreter, but for the slow ones."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import partwise
from partwise import ConstituencyParser, interpret
from partwise.datasets import Constituent, make_brackets, read_brackets
from partwise.files.tensors import ModelFileError, read_tensors, write_tensors
from partwise.structures.constituency.problem import memory_needed
from partwise.tasks.common.model_file import FORMAT, FORMAT_VERSION

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")  # hashes wrap around
FLAT = Constituent.read("(A (B b) (C c) (D d) (E e))")
SMALL = {"C": 0.1, "hash_bits": 8, "max_epochs": 2, "solver": "dca", "templates": ["f.tag|l.tag", "l.form", "f.form[-1]"]}
KNOWN = [("they", "PRP"), ("saw", "VBD"), ("the", "DT"), ("man", "NN"), (".", ".")]


def sentences(trees):
    return [tree.leaves() for tree in trees]


@pytest.fixture(autouse=True)
def _interpreted(request):
    if request.node.get_closest_marker("slow"):
        yield
        return
    with interpret():
        yield


@pytest.fixture(scope="module")
def parser():
    with interpret():
        return ConstituencyParser(**SMALL).fit(make_brackets(25))


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        (["f.form|l.tag"] * 300, "At most 256 templates of arcs or spans can be used. Got 300 instead"),
        (["h.form"], "span template 'h.form': cannot read"),
    ],
)
def test_templates_that_cannot_be_used(parser, tmp_path, templates, message):
    """They are refused by training, and in a file before anything is done with them."""
    with pytest.raises(ValueError, match=message):
        clone(parser).set_params(templates=templates).fit(make_brackets(3))
    path = tmp_path / "model"
    parser.save(path)
    header, tensors = read_tensors(str(path), FORMAT, FORMAT_VERSION)
    header["parameters"]["templates"] = templates
    write_tensors(path, header, tensors)
    with pytest.raises(ModelFileError, match=message):
        partwise.load(path)


def test_learns_and_answers(parser):
    test = make_brackets(10, seed=1)
    assert parser.score(test) > 0.95 and parser.brackets(sentences(test), test).f1 == parser.score(test)
    assert parser.brackets(sentences(test), [str(tree) for tree in test]).tags == 1.0
    assert parser.classes_.tolist() == ["NP", "PP", "S", "VP"]
    assert str(parser.predict([KNOWN])[0]) == "(S (NP (PRP they)) (VP (VBD saw) (NP (DT the) (NN man))) (. .))"
    assert parser.predict([]) == [] and parser.predict([[]]) == [Constituent("S", ())] and not len(parser.unparsed_)


def test_sentences_are_read_and_parsed_once(parser, monkeypatch):
    home, calls = "partwise.tasks.constituency.estimator", []
    for name in ("read_constituents", "best_outputs"):
        real = getattr(sys.modules[home], name)
        monkeypatch.setattr(f"{home}.{name}", lambda *given, real=real, name=name: calls.append(name) or real(*given))
    parser.brackets(make_brackets(3))
    assert calls == ["read_constituents", "best_outputs"]


def test_what_the_grammar_does_not_know(parser):
    """Unknown words and tags, no tree, one word: always a tree with these words and tags; those glued are named."""
    X = [[("zzz", w[1]) for w in KNOWN], [*KNOWN[:3], ("man", "ZZ"), KNOWN[4]], KNOWN[:2], [("a", "DT")], KNOWN[2:4]]
    trees = parser.predict(X)
    assert [tree.leaves() for tree in trees] == X
    assert str(trees[0]).startswith("(S (NP (PRP zzz)) (VP (VBD zzz) (NP") and "(NP (DT the) (ZZ man))" in str(trees[1])
    assert parser.unparsed_.tolist() == [2, 3, 4]
    assert [str(tree) for tree in trees[2:4]] == ["(S (NP (PRP they)) (VBD saw))", "(DT a)"]


def test_one_word_that_is_a_sentence():
    """It may be other things elsewhere, and there is nothing to learn."""
    trees = [Constituent.read("(S (NP (V go)))"), Constituent.read("(S (V go) (X (NP (V go))  (V go)))")]
    model = ConstituencyParser(**SMALL).fit(trees)
    assert model.predict(trees[:1]) == trees[:1] and not len(model.unparsed_)


def test_probabilities_and_kbest(parser):
    best = parser.predict_kbest([KNOWN], k=3)[0]
    assert best[0][0] == parser.predict([KNOWN])[0] and all(a[1] >= b[1] for a, b in zip(best, best[1:], strict=False))
    assert len(best) == 1  # others are not of this grammar
    both = parser.predict_kbest([[*KNOWN[:4], ("with", "IN"), *KNOWN[2:]]], k=3)[0]
    assert len({str(tree) for tree, _ in both}) == len(both) == 2
    assert len(parser.predict_kbest([KNOWN[:2]], k=3)[0]) == 1
    with pytest.raises(ValueError, match="fits scores, not probabilities"):
        parser.predict_marginals([KNOWN])
    crf = clone(parser).set_params(loss="crf", C=1.0, max_epochs=1).fit(make_brackets(8))
    found = crf.predict_marginals([KNOWN])[0]
    assert found["S", 0, 5] == pytest.approx(1.0) and all(-1e-9 <= p <= 1 + 1e-6 for p in found.values())
    with pytest.raises(ValueError, match="k must be an int"):
        parser.predict_kbest([KNOWN], k=0)


def test_a_long_sentence_asks_for_memory_first(parser, monkeypatch):
    """Refused before anything is allocated; by what is free, or by what is allowed."""
    long = [[("a", "DT")] * 2000]
    needed = {"predict": 20, "predict_marginals": 40, "predict_kbest": 68}  # bytes for a pair of words and a symbol
    crf = clone(parser).set_params(loss="crf", max_epochs=1).fit(make_brackets(3))
    monkeypatch.setattr("partwise.engine.memory.available_memory", lambda: 1e8)
    S = len(crf.grammar_.symbols) + 1
    for verb, size in needed.items():
        gigabytes = f"{size * 2000 * 2001 * S / 1e9:.1f}"
        message = f"sentence 0 has 2000 words; parsing it takes up to {gigabytes} GB with n_jobs=None, and 0.1 GB are free"
        with pytest.raises(MemoryError, match=f"{message}. Cut it into parts, leave it out, or take fewer threads"):
            getattr(crf, verb)(long)
    trees = make_brackets(3)
    enough = memory_needed(max(len(tree.leaves()) for tree in trees), crf.grammar_.packed) / 1e9
    tight = clone(parser).set_params(memory=1.5 * enough)
    assert tight.fit(trees).predict([[], KNOWN[:4]])[0] == Constituent("S", ())
    for change in ({"n_jobs": 2}, {"loss": "crf", "n_jobs": 1}):
        message = f"with n_jobs={change['n_jobs']}, and only .* GB are allowed. Cut .*, take fewer threads, or raise 'memory'"
        with pytest.raises(MemoryError, match=message):
            clone(tight).set_params(**change).fit(trees)


def test_brackets_that_are_not_known():
    """Trees known in part are completed; where a phrase goes is learnt from single brackets."""
    trees = make_brackets(14)
    words = ("(DT the) (NN man)", "(PP (IN with) (NP (DT the) (NN camera)))")
    partial = Constituent.read(f"(? (NP (PRP they)) (? (VBD saw) (NP (NP {words[0]}) {words[1]})) (. .))")
    model = ConstituencyParser(**SMALL | {"C": 10.0}).fit([*trees, *[partial] * 5])
    grammar, leaves = model.grammar_, partial.leaves()
    for begin, end, symbols in grammar.known_brackets(partial):
        names = [grammar.symbols[k] for k in symbols]
        assert names and all(
            name.split("+")[-1] == leaves[begin][1] if end == begin + 1 else "NP" in name or "PP" in name for name in names
        )
    found = model.predict([partial])[0]
    assert ("NP", 2, 7) not in clone(model).fit(trees).predict([partial])[0].spans()
    assert ("NP", 2, 7) in found.spans() and ("NP", 0, 1) in found.spans() and "?" not in model.classes_
    assert ConstituencyParser(**SMALL | {"loss": "crf", "max_epochs": 1}).fit([*trees[:4], partial]).predict([partial])
    assert 0 <= model.set_params(early_stopping=True).fit([*trees, partial]).result_.history[0].validation <= 1
    with pytest.raises(ValueError, match="sentence 1: only complete trees can be compared with"):
        model.score([trees[0], partial])
    with pytest.raises(ValueError, match="Of all held-out trees only parts are known"):
        model.fit(trees, validation=[partial])
    with pytest.raises(ValueError, match="cannot tell when to stop: there are no trees of the held-out sentences"):
        model.fit(trees, validation=(sentences(trees), None))
    model.set_params(early_stopping=False)
    with pytest.raises(ValueError, match="A grammar is read from complete trees, and there are none"):
        model.fit([partial])
    with pytest.raises(ValueError, match="sentence 2: the grammar has no tree with the brackets that are known"):
        model.fit([*trees[:2], Constituent.read("(? (PP (PRP they) (VBD saw)) (. .))")])


def test_tags_may_be_predicted():
    words = [tree.words() for tree in make_brackets(4, seed=1)]
    model = ConstituencyParser(**SMALL | {"tags": "predicted", "templates": ["f.form", "l.form", "f.form|l.form"]})
    found = model.fit(make_brackets(25)).predict(words)
    assert [tree.words() for tree in found] == words
    assert model.brackets(words, make_brackets(4, seed=1)).tags > 0.8


def test_files(parser, tmp_path):
    test = make_brackets(5, seed=1)
    parser.save(tmp_path / "model")
    again = partwise.load(tmp_path / "model")
    assert isinstance(again, ConstituencyParser) and again.predict(test) == parser.predict(test)
    assert again.grammar_.symbols == parser.grammar_.symbols and again.classes_.tolist() == parser.classes_.tolist()
    again.grammar_.packed.tag[0] = 99  # a tag that there is not
    again.save(tmp_path / "bad")
    with pytest.raises(partwise.ModelFileError, match="a symbol has a tag that there is not"):
        partwise.load(tmp_path / "bad")


def test_scikit_learn(parser):
    trees = make_brackets(8)
    search = GridSearchCV(ConstituencyParser(**SMALL | {"max_epochs": 1}), {"markov": [0, 1]}, cv=2)
    search.fit(sentences(trees), trees)
    assert search.best_score_ > 0.3
    assert clone(parser).get_params() == parser.get_params()


def test_early_stopping_weights_and_warm_starts():
    trees = make_brackets(12)
    model = ConstituencyParser(**SMALL | {"early_stopping": True, "patience": 1}).fit(trees)
    assert 0 <= model.result_.history[0].validation <= 1
    model = ConstituencyParser(**SMALL | {"warm_start": True}).fit(trees, sample_weight=[1] * 11 + [0])
    model.fit(trees[:5])
    with pytest.raises(ValueError, match="warm_start=True: the symbol 'A' is not in the grammar"):
        model.fit([FLAT])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hash_bits": 40}, r"'hash_bits' parameter of ConstituencyParser must be an int in the range \[1, 30\]"),
        ({"markov": -1}, "'markov' parameter"),
        ({"memory": 0}, "'memory' parameter of ConstituencyParser must be a float in the range"),
        ({"tags": "some"}, "'tags' parameter of ConstituencyParser must be 'given' or 'predicted'. Got 'some'"),
        ({"templates": ["h.form"]}, "span template 'h.form': cannot read"),
        ({"templates": ["f.colour"]}, "No arc template can be used"),
    ],
)
def test_bad_parameters(change, message):
    with pytest.raises(ValueError, match=message):
        ConstituencyParser(**SMALL | change).fit(make_brackets(2))


def test_bad_data(parser):
    model, trees = ConstituencyParser(**SMALL), make_brackets(2)
    with pytest.raises(ValueError, match="no trees to learn from"):
        model.fit(sentences(trees))
    with pytest.raises(ValueError, match="2 sentences, but 1 trees"):
        model.fit(sentences(trees), trees[:1])
    with pytest.raises(ValueError, match="sentence 0: its tree has .* for word 1, the sentence"):
        model.fit([KNOWN], ["(S (PRP We) (VBD saw))"])
    with pytest.raises(ValueError, match="sentence 0: its tree has 2 words, the sentence 5 words"):
        model.fit([KNOWN], ["(S (PRP they) (VBD saw))"])
    with pytest.raises(ValueError, match="other tags than the sentence"):
        model.fit([KNOWN[:2]], ["(S (PRP they) (NN saw))"])
    with pytest.raises(ValueError, match=r"<bytes>, line 2: the label 'A\+B'"):
        model.fit(read_brackets(b"(S a)\n(A+B a)"))
    with pytest.raises(ValueError, match="This model looks at tags"):
        parser.predict([["they", "saw"]])
    with pytest.raises(TypeError, match="Got a string instead"):
        parser.predict(["they saw"])
    with pytest.raises(TypeError, match="list of lists of words"):
        parser.predict("they saw")
    with pytest.raises(ValueError, match="has nothing below it"):
        model.fit([Constituent("S", ())])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["english", "arithmetic"])
def test_ambiguous_trees_are_learnt(kind):
    """Compiled: where a phrase goes depends on its noun, which pairs of words at the ends of spans tell."""
    model = ConstituencyParser(hash_bits=14, solver="dca", max_epochs=5).fit(make_brackets(300, kind))
    scores = model.brackets(make_brackets(100, kind, seed=1))
    assert scores.f1 > 0.97 and not len(model.unparsed_)
    assert np.isfinite(model.weights_).all()


@pytest.fixture(scope="module")
def free():
    with interpret():
        return ConstituencyParser(**SMALL | {"grammar": None, "loss": "crf", "C": 1.0}).fit(make_brackets(25))


def test_without_a_grammar(free, tmp_path):
    """It learns, gives probabilities and the k best, and is the same from its file; there is a tree for everything."""
    test = make_brackets(10, seed=1)
    assert free.score(test) > 0.9 and free.classes_.tolist() == ["NP", "PP", "S", "VP"] and not len(free.grammar_.rules)
    ranked = free.predict_kbest([KNOWN], k=5)[0]
    assert ranked[0][0] == free.predict([KNOWN])[0] and len({str(tree) for tree, _ in ranked}) >= 3
    assert all(a[1] >= b[1] for a, b in zip(ranked, ranked[1:], strict=False))
    found = free.predict_marginals([KNOWN])[0]
    assert found["S", 0, 5] > 0.5 and all(-1e-9 <= p <= 1 + 1e-6 for p in found.values())
    odd = [[*KNOWN[:3], ("man", "ZZ"), KNOWN[4]], KNOWN[:2], KNOWN[2:4], [("a", "DT")], []]
    assert [tree.leaves() for tree in free.predict(odd)[:-1]] == odd[:-1]
    free.save(tmp_path / "model")
    again = partwise.load(tmp_path / "model")
    assert again.grammar is None and again.predict(test) == free.predict(test)
    header, tensors = read_tensors(str(tmp_path / "model"), FORMAT, FORMAT_VERSION)
    for name, wrong in (("inner", "all"), ("tag_of", [0])):
        write_tensors(tmp_path / "bad", header | {"model": header["model"] | {name: wrong}}, tensors)
        with pytest.raises(ModelFileError):
            partwise.load(tmp_path / "bad")


def test_without_a_grammar_trees_known_in_part_are_completed(free):
    partial = Constituent.read("(? (NP (PRP they)) (? (VBD saw) (NP (DT the) (NN man))) (. .))")
    model = clone(free).set_params(max_epochs=1)
    tree = model.fit([*make_brackets(6), partial]).predict([partial])[0]
    assert tree.leaves() == KNOWN and "?" not in model.classes_ and model.result_.primal > 0


def test_without_a_grammar_charts_are_smaller(free, parser):
    n, S = 100, free.grammar_.packed.n_symbols
    assert memory_needed(n, free.grammar_.packed) == n * (n + 1) * (4 * S + 44)
    assert memory_needed(n, parser.grammar_.packed) == n * (n + 1) * 20 * parser.grammar_.packed.n_symbols
    with pytest.raises(ValueError, match="'grammar' parameter of ConstituencyParser must be 'trees' or None. Got 'some' instead"):
        ConstituencyParser(grammar="some").fit(make_brackets(2))


def test_without_a_grammar_the_defaults_are_others():
    """DCA and more features, with the first letters of tags: what it has not seen of one tag it knows of its like."""
    known, other = ([(word, f"NN{k}") for word in "ab"] for k in "SP")
    trees = [Constituent.read("(S (X (NNS a) (NNS b)) (. .))"), Constituent.read("(S (NP (DT a)) (VB b) (. .))")]
    small = {"hash_bits": 10, "max_epochs": 2}
    free, parser = ConstituencyParser(grammar=None, **small).fit(trees), ConstituencyParser(**small).fit(trees)
    assert (free.solver_, parser.solver_) == ("dca", "pegasos") and (free._bits, ConstituencyParser(grammar=None)._bits) == (
        10,
        20,
    )
    assert free.defaults() == parser.defaults()
    coarse = ConstituencyParser(grammar=None, templates=["f.coarse|l.coarse"], solver="dca", **small).fit(trees)
    a, b = (coarse.predict([[*words, (".", ".")]])[0] for words in (known, other))
    assert a == trees[0] and [label for label, *_ in b.spans()] == ["S", "X"]
