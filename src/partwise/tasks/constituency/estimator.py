"""`ConstituencyParser`: learns constituency trees.

    minimise  Omega(w) + C sum_i weight_i L_i(w)     over the trees of a grammar, s(y) = sum of scores of its nodes and rules

The grammar is read from the training trees (`grammar`); nodes are scored by features of their spans
(`partwise.features.span_rows`), rules by a weight each. Without a grammar any labels may meet, and there are nodes only.
"""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from partwise import passes
from partwise.engine.memory import require_memory
from partwise.engine.threads import n_threads
from partwise.features.arc_rows import compile_arc_templates
from partwise.features.span_rows import FREE_SPANS, SPANS, as_arc_templates, span_rows
from partwise.losses.records import get_loss
from partwise.objective import best_outputs
from partwise.structures.constituency.grammar import n_rules
from partwise.structures.constituency.problem import GrammarProblem, grammar_problem, memory_needed
from partwise.tasks.common.base import Structured, is_corpus
from partwise.tasks.common.checks import is_count, is_real, one_of, optional
from partwise.tasks.common.label_arrays import check_k, example_weights
from partwise.tasks.common.model_file import labels_in
from partwise.tasks.constituency.data import BARE, NAMES, Constituents, read_constituents
from partwise.tasks.constituency.files import Brackets, Constituent
from partwise.tasks.constituency.grammar import TreeGrammar, is_partial, labels_of, read_grammar, read_labels, rebuild
from partwise.tasks.constituency.scores import BracketScores, bracket_scores
from partwise.tasks.constituency.suspects import BracketSuspects

LEAST = 1e-6  # probabilities below are not listed
BITS, FREE_BITS = 16, 20


@dataclass(eq=False, repr=False)
class ConstituencyParser(BracketSuspects, Structured):
    """Parses sentences into constituency trees.

    Trees come from a file (`partwise.datasets.read_brackets`) or are written in brackets, ``"(S (NP (PRP They)) (VP (VBP
    bark)))"``; sentences are lists of (word, tag), or of words. A sentence that the grammar has no tree of gets one of pieces
    below the commonest root; `unparsed_` lists those. ``loss="crf"`` and ``"softmax_margin"`` give probabilities of brackets;
    early stopping judges by F1 of brackets.

    Parameters
    ----------
    %(loss)s
    grammar : {"trees", None}, default="trees"
        Which labels may be above which: by the rules of the training trees, each with a weight; or any, by the features of their
        spans alone, which is quicker.
    tags : {"given", "predicted"}, default="given"
        Whether tags of words are part of the input, or of the tree that is looked for.
    markov : int or None, default=0
        Children that a node with more than two remembers; None: all of them. More is a larger grammar: slower, and stricter.
    templates : list of str, optional
        Features of spans (see `partwise.features.span_rows`), at most 256; without a grammar there are more by default.
    hash_bits : int, optional
        There are 2^hash_bits features of spans, each with a weight for every symbol; by default 2^16, without a grammar, where
        there are few symbols, 2^20.
    memory : float, optional
        GB that charts of a sentence may take, on all threads together; what is free by default. One that would take more is
        refused before any work: 2,000 words and 50 symbols need 4.
    %(learning)s

    Attributes
    ----------
    grammar_ : TreeGrammar
        Symbols and rules.
    classes_ : array
        The labels of brackets.
    weights_ : array
        Of spans, and then of rules, flat.
    unparsed_ : array
        Sentences last predicted that the grammar has no tree of.
    result_, solver_, temperature_
        As in `Classifier`.

    Examples
    --------
    >>> from partwise.datasets import make_brackets
    >>> parser = ConstituencyParser().fit(make_brackets(100))  # doctest: +SKIP
    >>> print(parser.predict([[("they", "PRP"), ("saw", "VBD"), ("the", "DT"), ("man", "NN"), (".", ".")]])[0])  # doctest: +SKIP
    (S (NP (PRP they)) (VP (VBD saw) (NP (DT the) (NN man))) (. .))
    """

    _: KW_ONLY
    grammar: str | None = "trees"
    tags: str = "given"
    markov: int | None = 0
    templates: Any = None
    hash_bits: int | None = None
    memory: float | None = None
    dtype: Any = "float32"

    classes_: np.ndarray = field(init=False)
    weights_: np.ndarray = field(init=False)
    grammar_: TreeGrammar = field(init=False)
    unparsed_: np.ndarray = field(init=False)

    @classmethod
    def defaults(cls) -> Any:
        from partwise.solvers.defaults import MARGIN, Defaults

        # there are more features to an arc, or to a span, than to a token (docs/defaults.md)
        return Defaults(C={MARGIN: 0.03})

    def _own_defaults(self) -> Any:
        from partwise.solvers.defaults import MARGIN

        own = self.defaults()
        # many features and no rules: Pegasos is still far from its optimum when DCA is done (docs/constituency.md)
        return dataclasses.replace(own, solver={MARGIN: "dca"}) if self.grammar is None else own

    _checks = {
        **Structured._checks,
        "grammar": (lambda value: value in ("trees", None), "'trees' or None"),
        "hash_bits": (lambda value: value is None or (is_count(1)(value) and value <= 30), "an int in the range [1, 30] or None"),
        "markov": (is_count(0, optional=True), "an int in the range [0, inf) or None"),
        "memory": (optional(is_real(0.0)), "a float in the range (0, inf) or None"),
        "tags": one_of("given", "predicted"),
    }

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, *, validation=None, checkpoint=None):
        """Train from nothing, or with ``warm_start=True`` from the previous weights and with the same grammar.

        Parameters
        ----------
        X : Brackets, list of trees, or list of sentences
            A sentence is a list of (word, tag), or of words if tags are to be predicted.
        y : list of trees, optional
            `Constituent` or text in brackets; of brackets and trees, they themselves by default. Where some brackets are labelled
            ``?``, only the others are known, and training completes the tree.
        sample_weight : array (sentences,), optional
        validation : Brackets or (X, y), optional
            Held-out trees for early stopping, instead of a part of X.
        checkpoint : path, optional
            As in `SequenceLabeler.fit`.
        """
        if is_corpus(X):
            return self._fit_packed(X, (y, sample_weight), validation, checkpoint)
        loss = self._check_parameters()
        start = self._previous_weights
        given = read_constituents(X, y, self._tagged)
        if given.trees is None:
            raise ValueError("There are no trees to learn from: give y, or trees in brackets.")
        weight = example_weights(sample_weight, len(given), "sentence")
        seed = self._seed()
        given, weight, held = self._parts(given, weight, validation, self._read, seed)
        if start is None:
            complete = [tree for tree in given.trees or () if not is_partial(tree)]
            if not complete:
                raise ValueError("A grammar is read from complete trees, and there are none: all have brackets labelled '?'.")
            self.grammar_ = self._read_grammar(complete)
        self.classes_ = np.array(self.grammar_.labels(), object)
        self._say(f"{len(self.grammar_.symbols)} symbols, {len(self.grammar_.rules)} rules")
        self._solve(self._problem(given, labelled=True), loss, weight, self._judge(held), start, seed, checkpoint)
        return self

    def _read_grammar(self, complete: list[Constituent]) -> TreeGrammar:
        return read_labels(complete, self._tagged) if self.grammar is None else read_grammar(complete, self.markov)

    @property
    def _tagged(self) -> bool:
        return self.tags == "given"

    def _judge_by(self, validation: Any, problem: Any) -> Any:
        return self._judge(self._read(*(validation if isinstance(validation, tuple) else (validation, None))))

    def _judge(self, held: Constituents | None) -> Any:
        if held is None:
            return None
        if held.trees is None:
            raise ValueError(f"{self._who} cannot tell when to stop: there are no trees of the held-out sentences.")
        held = held.take(np.array([i for i, tree in enumerate(held.trees) if not is_partial(tree)], np.int64))
        if not len(held):
            raise ValueError("Of all held-out trees only parts are known: give complete ones for validation.")
        problem, truth = self._problem(held), held.trees or []

        def wrong(w: np.ndarray) -> float:
            return 1.0 - bracket_scores(truth, self._trees(held, best_outputs(problem, w, self.n_jobs)[0])).f1

        return wrong

    # -- packing ------------------------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any = None) -> Constituents:
        return read_constituents(X, y, self._tagged)

    @property
    def _spans(self) -> tuple[str, ...]:
        """The templates."""
        return tuple(self.templates or (FREE_SPANS if self.grammar is None else SPANS))

    @property
    def _bits(self) -> int:
        """log2 of the number of features."""
        return self.hash_bits or (FREE_BITS if self.grammar is None else BITS)

    def _check_memory(self, given: Constituents, sums: bool, k: int) -> None:
        """Say so before a long sentence takes all memory there is."""
        longest = int(given.lengths.max(initial=0))
        what = f"{given.places[int(np.argmax(given.lengths))]} has {longest} words; parsing it" if longest else ""
        needed = memory_needed(longest, self.grammar_.packed, sums, k) * n_threads(self.n_jobs)
        require_memory(needed, self.n_jobs, what, "Cut it into parts, leave it out", self.memory)

    def _problem(self, given: Constituents, labelled: bool = False, sums: bool = False, k: int = 1) -> GrammarProblem:
        """Packed sentences, to learn from or to parse; by oracles that sum over trees or find the k best, if so."""
        grammar, trees, brackets = self.grammar_, None, None
        self._check_memory(given, sums or (labelled and get_loss(self.loss).is_smooth), k)
        if labelled:
            try:
                trees = [None if is_partial(tree) else grammar.encode(tree, self.markov) for tree in given.trees or ()]
            except KeyError as error:
                raise ValueError(
                    f"warm_start=True: the symbol {error.args[0]!r} is not in the grammar of the first fit. Fit from nothing, "
                    "with all trees."
                ) from None
            brackets = [grammar.known_brackets(tree) if is_partial(tree) else () for tree in given.trees or ()]
        known = None
        if self._tagged and given.tags is not None:
            known = grammar.tags_of(tag for tags in given.tags for tag in tags)
        columns, names = given.columns(self._tagged)
        rows = span_rows(columns, names, self._spans, self._bits)
        return grammar_problem(rows, given.lengths, grammar.packed, trees, known, glue=not labelled, brackets=brackets)

    def _trees(self, given: Constituents, outputs: np.ndarray) -> list[Constituent]:
        """What these outputs, end to end, are; an empty sentence is a root without anything below."""
        found, at, glued = [], 0, []
        for i, words in enumerate(given.words):
            y = outputs[at : at + max(2 * len(words) - 1, 0)]
            at += len(y)
            if self.grammar_.is_glued(y, len(words)):
                glued.append(i)
            found.append(self._tree(given, i, y))
        self.unparsed_ = np.array(glued, np.int64)
        return found

    def _tree(self, given: Constituents, i: int, y: np.ndarray) -> Constituent:
        words, tags = given.words[i], given.tags[i] if self._tagged and given.tags is not None else None
        return self.grammar_.decode(y, words, tags) if words else Constituent(self.grammar_.main_root, ())

    # -- answers ------------------------------------------------------------------------------------------------------

    def predict(self, X) -> list[Constituent]:
        """The tree of highest score of each sentence. `unparsed_` then tells which had none, and were glued together."""
        self._require_fitted()
        return self._parse(self._read(X))

    def _parse(self, given: Constituents) -> list[Constituent]:
        return self._trees(given, best_outputs(self._problem(given), self.weights_, self.n_jobs)[0])

    def brackets(self, X, y=None, **settings) -> BracketScores:
        """Precision, recall and F1 (see `partwise.metrics.bracket_scores`)."""
        self._require_fitted()
        given = self._read(X, y)
        if given.trees is None:
            raise ValueError("There are no trees to compare with: give y, or trees in brackets.")
        for tree, place in zip(given.trees, given.places, strict=True):
            if is_partial(tree):
                raise ValueError(f"{place}: only complete trees can be compared with, and brackets labelled '?' are not known.")
        return bracket_scores(given.trees, self._parse(given), **settings)

    def score(self, X, y=None) -> float:
        """F1 of labelled brackets."""
        return self.brackets(X, y).f1

    def predict_marginals(self, X) -> list[dict[tuple[str, int, int], float]]:
        """P(bracket | x) of every (label, begin, end) that is likelier than 1e-6. Refused for margin losses."""
        beta = self._beta()
        given = self._read(X)
        problem, symbols, found = self._problem(given, sums=True), self.grammar_.symbols, []
        S = self.grammar_.packed.n_symbols
        for i, words in enumerate(given.words):
            n = len(words)
            own: dict[tuple[str, int, int], float] = {}
            p = passes.parts(problem, i, self.weights_, beta)[: n * (n + 1) // 2 * S].reshape(-1, S)
            begins, lasts = np.triu_indices(n)
            for span, symbol in zip(*np.nonzero(p[:, : len(symbols)] >= LEAST), strict=True):
                begin, end = int(begins[span]), int(lasts[span]) + 1
                for label in labels_of(symbols[symbol], end == begin + 1):
                    own[label, begin, end] = own.get((label, begin, end), 0.0) + float(p[span, symbol])
            found.append(own)
        return found

    def predict_kbest(self, X, k: int = 5) -> list[list[tuple[Constituent, float]]]:
        """For each sentence a list of at most k pairs (tree, score), best first; one alone where the grammar has no tree."""
        check_k(k)
        self._require_fitted()
        given = self._read(X)
        problem = self._problem(given, k=int(k))
        out, values, found = passes.kbest(problem, self.weights_, int(k), self.n_jobs)
        answers = []
        for i, words in enumerate(given.words):
            ys = out[: int(found[i]), problem.nodes[i] : problem.nodes[i + 1]]
            ranks = [j for j, y in enumerate(ys) if j == 0 or not self.grammar_.is_glued(y, len(words))]
            answers.append([(self._tree(given, i, ys[j]), float(values[i, j])) for j in ranks])
        return answers

    def parse(self, X: Brackets) -> str:
        """The predicted trees as text, one a line."""
        return "".join(f"{tree}\n" for tree in self.predict(X))

    # -- the model file -----------------------------------------------------------------------------------------------

    def _to_file(self):
        grammar = self.grammar_
        header = {
            "labels": np.array(grammar.symbols, object),
            "classes": self.classes_,
            "tags": list(grammar.tags),
            "tag_of": grammar.packed.tag[: len(grammar.symbols)].tolist(),
            "roots": np.flatnonzero(grammar.packed.root).tolist(),
            "main_root": grammar.main_root,
            "main_tag": grammar.main_tag,
        }
        if self.grammar is None:
            header["inner"] = np.flatnonzero(grammar.packed.inner).tolist()
        return header, {"rules": np.ascontiguousarray(grammar.rules, np.int32)}

    def _from_file(self, header, tensors, need):
        symbols = labels_in(header).tolist()
        if not all(isinstance(name, str) for name in symbols):
            raise ValueError("symbols are not all strings")
        self.grammar = None if "inner" in header else "trees"
        for name in ("tags", "tag_of", "roots", *(["inner"] if self.grammar is None else ())):
            need(header, name, list)
        names = NAMES if self._tagged else BARE
        compile_arc_templates(as_arc_templates(self._spans), names)  # or it says what is wrong
        self.grammar_ = rebuild(header, tensors["rules"], symbols)
        self.classes_ = need(header, "classes", np.ndarray)
        S, R = self.grammar_.packed.n_symbols, n_rules(self.grammar_.packed)
        return ((1 << self._bits) + (R + S - 1) // S) * S
