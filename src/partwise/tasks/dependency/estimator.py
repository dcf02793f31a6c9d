"""`DependencyParser`: learns dependency trees, and the relations of their arcs.

    heads:       minimise  Omega(w) + C sum_i weight_i L_i(w)     over trees, s(y) = sum_m w . x_{h(m) -> m}
    relations:   the same for classes, one example for each arc of the training trees, given the arc

With ``order=2``, siblings and grandparents are scored too (`partwise.structures.dependency.second_order`), over the arcs that a
model of first order, which is learnt before, finds worth it (`pruning`).

Relations are learnt apart from heads, given the right arcs, and answered given the arcs that were found: a joint model scores
every arc with every relation, some fifty times the work.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from partwise import passes
from partwise.features.arc_pairs import SECOND_ORDER, compile_pair_templates, pair_rows
from partwise.features.arc_rows import FIRST_ORDER, ArcRows, arc_rows, compile_arc_templates
from partwise.features.rows import take_rows
from partwise.losses.records import Loss
from partwise.objective import best_outputs, completions
from partwise.structures.dependency.problem import TreeProblem, is_projective, tree_problem
from partwise.structures.dependency.second_order import SecondOrderProblem, second_order_problem
from partwise.structures.factor_graph.problem import NOT_PROVEN, SUMS
from partwise.structures.multiclass import multiclass_problem
from partwise.tasks.common.base import Structured, is_corpus
from partwise.tasks.common.checks import is_bool, is_count, one_of, optional
from partwise.tasks.common.label_arrays import check_k, example_weights
from partwise.tasks.common.model_file import labels_in
from partwise.tasks.dependency import pruning
from partwise.tasks.dependency.data import Sentences, Tree, one_root, read_sentences, several_roots
from partwise.tasks.dependency.relations import RELATION_BITS, learns_relations_by, relation_rows
from partwise.tasks.dependency.scores import AttachmentScores, attachment_scores
from partwise.tasks.dependency.suspects import TreeSuspects


@dataclass(eq=False, repr=False)
class DependencyParser(TreeSuspects, Structured):
    """Parses sentences into dependency trees, projective or not.

    Sentences come from a treebank (`partwise.datasets.read_treebank`: CoNLL-U, CoNLL-X), or are lists of words: dicts with the
    keys form, lemma, upos, xpos, feats (any of them), tuples of cells, or plain strings. Trees are lists of heads, with relations
    or without. Sentences may be empty. ``loss="crf"`` and ``"softmax_margin"`` give probabilities of arcs; early stopping goes
    by UAS.

    Parameters
    ----------
    %(loss)s
    templates : list of str, optional
        Features of arcs (`partwise.features.arc_rows`), at most 256; those of McDonald et al. (2005) and some more by default.
    columns : list of str, optional
        Names of the cells of a word, where words are tuples; form, lemma, upos, xpos, feats by default.
    hash_bits : int, default=22
        There are 2^hash_bits weights of arcs.
    projective : bool, default=False
        Whether arcs must not cross. Training trees whose arcs do are left out then, with a warning.
    single_root : bool, optional
        Whether one word alone hangs from the root; by default, if it is so in all training trees.
    relations : bool, default=True
        Whether to learn the relations of arcs too, where there are any.
    order : {1, 2}, default=1
        2: score consecutive siblings and grandparents too. Some two points of UAS better on English, several times slower. The
        best tree is then sought by AD3, over the arcs that a model of first order finds worth it, and `proven_` tells how often
        it is known to be the best; probabilities are those of belief propagation (`sums`).
    candidates : int, default=10
        Heads that are looked at for each word, at most, if `order` is 2.
    sums : {"trw", "bethe"}, default="trw"
        How ``"crf"`` and other losses that sum over trees do so if `order` is 2: by tree-reweighted belief propagation, never too
        low, so that the objective is a bound of the true one, or by belief propagation, which learns three to four times as fast,
        but is on either side of the truth: what it gets wrong is learnt, and parsers are the worse for it.
    %(learning)s

    Attributes
    ----------
    classes_ : array
        The relations.
    weights_, relation_weights_ : array
        Weights of arcs, and of their relations, flat.
    columns_ : tuple of str
        The cells that the model looks at.
    single_root_ : bool
    result_, solver_, temperature_
        As in `Classifier`, of the heads.

    Examples
    --------
    >>> sentences = [["dogs", "bark"], ["they", "buy", "books"]]
    >>> trees = [([2, 0], ["nsubj", "root"]), ([2, 0, 2], ["nsubj", "root", "obj"])]
    >>> DependencyParser().fit(sentences, trees).predict([["dogs", "bark"]])[0].heads
    [2, 0]
    """

    _: KW_ONLY
    templates: Any = None
    columns: Any = None
    hash_bits: int = 22
    projective: bool = False
    single_root: bool | None = None
    relations: bool = True
    order: int = 1
    candidates: int = 10
    sums: str = "trw"
    dtype: Any = "float32"

    classes_: np.ndarray = field(init=False)
    weights_: np.ndarray = field(init=False)
    relation_weights_: np.ndarray = field(init=False)
    pruner_weights_: np.ndarray = field(init=False)  #: of the model of first order, if `order` is 2
    proven_: float = field(init=False)  #: share of the trees last predicted that are known to be the best
    columns_: tuple[str, ...] = field(init=False)
    tags_: tuple[str, ...] = field(init=False)  #: of the training data: for those who look into the model

    @classmethod
    def defaults(cls) -> Any:
        from partwise.solvers.defaults import MARGIN, Defaults

        # there are more features to an arc, or to a span, than to a token (docs/defaults.md)
        return Defaults(C={MARGIN: 0.03})

    _checks = {
        **Structured._checks,
        "hash_bits": (lambda value: is_count(1)(value) and value <= 30, "an int in the range [1, 30]"),
        "projective": (is_bool, "a bool"),
        "single_root": (optional(is_bool), "a bool or None"),
        "relations": (is_bool, "a bool"),
        "order": (lambda value: is_count(1)(value) and value <= 2, "1 or 2"),
        "candidates": (is_count(1), "an int in the range [1, inf)"),
        "sums": one_of(*SUMS),
    }

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, *, validation=None, checkpoint=None):
        """Train from nothing, or with ``warm_start=True`` from the previous weights.

        Parameters
        ----------
        X : Treebank, or list of sentences
            A sentence is a list of words: dicts with the keys form, lemma, upos, xpos, feats (any of them), tuples in the order
            of `columns`, or strings.
        y : list of trees, optional
            `Tree`, (heads, relations) or heads of each sentence; of a treebank, its own by default. None, or -1, as a head, and
            None as a relation, stand for unknown ones.
        sample_weight : array (sentences,), optional
        validation : Treebank or (X, y), optional
            Held-out trees for early stopping, instead of a part of X.
        checkpoint : path, optional
            As in `SequenceLabeler.fit`, for the heads.
        """
        if is_corpus(X):
            return self._fit_packed(X, (y, sample_weight), validation, checkpoint)
        loss = self._check_parameters()
        start = self._previous_weights
        given = read_sentences(X, y, self.columns, None if start is None else self.columns_)
        if given.heads is None:
            raise ValueError("There are no trees to learn from: give y, or a treebank with heads.")
        if start is None and len(given.heads) and not (given.heads >= 0).any():
            raise ValueError("There are no trees to learn from: no head of any word is known.")
        weight = example_weights(sample_weight, len(given.lengths), "sentence")
        one = one_root(given)
        single_root = bool(one.all()) if self.single_root is None else self.single_root
        if single_root and not one.all():
            raise ValueError(several_roots(given, int(np.flatnonzero(~one)[0]), X))
        given, weight = self._fitting(given, weight)
        seed = self._seed()
        names = given.names
        given, weight, held = self._parts(given, weight, validation, lambda X, y: read_sentences(X, y, self.columns, names), seed)
        self.columns_, self.single_root_ = given.names, single_root
        tags = next((name for name in ("upos", "xpos") if name in given.names), None)
        self.tags_ = () if tags is None else tuple(sorted(given.words.cells[given.names.index(tags)]))
        if self.order == 2:
            before = None if start is None else getattr(self, "pruner_weights_", None)
            self._say("a model of first order, to choose arcs by")
            self._solve(self._first_order(given), loss, weight, None, before, seed)
            self.pruner_weights_ = self.weights_
        self._solve(self._problem(given), loss, weight, self._judge(held), start, seed, checkpoint)
        self._learn_relations(given, loss, weight, seed)
        return self

    def _fitting(self, given: Sentences, weight: np.ndarray) -> tuple[Sentences, np.ndarray]:
        """Without the sentences whose arcs cross, if trees are to be projective."""
        if not self.projective or given.heads is None:
            return given, weight
        starts = given.words.starts
        trees = [given.heads[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)]
        fine = np.array([bool((heads < 0).any()) or is_projective(heads) for heads in trees], bool)
        if fine.all():
            return given, weight
        if not fine.any():
            raise ValueError("No training tree is projective. Take projective=False.")
        warnings.warn(
            f"{self._who}: {int((~fine).sum())} of {len(fine)} training trees have crossing arcs and are left out, for "
            "projective=True.",
            stacklevel=3,
        )
        return given.take(np.flatnonzero(fine)), weight[fine]

    def _judge_by(self, validation: Any, problem: Any) -> Any:
        X, y = validation if isinstance(validation, tuple) else (validation, None)
        return self._judge(read_sentences(X, y, self.columns, self.columns_))

    def _judge(self, held: Sentences | None) -> Any:
        if held is None:
            return None
        if held.heads is None or not (held.heads >= 0).any():
            raise ValueError(f"{self._who} cannot tell when to stop: no head of the held-out sentences is known.")
        problem, truth = self._problem(held, labelled=False), held.heads

        def wrong(w: np.ndarray) -> float:
            return 1.0 - attachment_scores(truth, best_outputs(problem, w, self.n_jobs)[0]).uas

        return wrong

    def _learn_relations(self, given: Sentences, loss: Loss, weight: np.ndarray, seed: int) -> None:
        """One example for each arc that is known with its relation."""
        self.classes_, self.relation_weights_ = np.array([], object), np.zeros(0, self._dtype)
        if not self.relations or given.relations is None or given.heads is None:
            return
        names = sorted({name for name in given.relations if name is not None})
        known = np.array([name is not None for name in given.relations]) & (given.heads >= 0)
        if not names or not known.any():
            return
        self.classes_ = np.array(names, object)
        index = {name: k for k, name in enumerate(names)}
        gold = np.array([index.get(name or "", 0) for name in given.relations], np.int32)[known]
        rows = relation_rows(self, given, given.heads)
        problem = multiclass_problem(take_rows(rows, np.flatnonzero(known)), gold, len(names))
        own = np.repeat(weight, given.lengths)[known]
        self.relation_weights_ = self._solve_beside("relation", problem, loss, own, seed)

    def _loss_beside(self, loss: Loss) -> Loss:
        return learns_relations_by(loss)

    # -- packing ------------------------------------------------------------------------------------------------------

    def _arcs(self, given: Sentences, bits: int) -> ArcRows:
        return arc_rows(given.words, given.names, self._templates()[0], bits)

    def _problem(self, given: Sentences, labelled: bool = True) -> TreeProblem | SecondOrderProblem:
        if self.order == 1:
            return self._first_order(given, labelled)
        beta = pruning.SHARPNESS if self.temperature_ is None else 1.0 / self.temperature_
        partial = labelled and given.heads is not None and bool((given.heads < 0).any())
        first = self._first_order(given, labelled=partial)
        return second_order_problem(
            first.rows,
            pair_rows(first.rows, given.lengths, given.names, self._templates()[1]),
            given.lengths,
            pruning.likely_arcs(first, self.pruner_weights_, beta, self.candidates, self.n_jobs),
            given.heads if labelled else None,
            targets=completions(first, self.pruner_weights_, self.n_jobs)[0] if partial else None,
            projective=self.projective,
            single_root=self.single_root_,
            sums=self.sums,
        )

    def _templates(self) -> tuple[list[str], list[str]]:
        """Of arcs, and of pairs of arcs: those that name a sibling or a grandparent."""
        given = list(self.templates or (*FIRST_ORDER, *SECOND_ORDER))
        pairs = [text for text in given if re.search(r"(^|\|)\s*[sg]\.", text)]
        return [text for text in given if text not in pairs], pairs or list(SECOND_ORDER)

    def _first_order(self, given: Sentences, labelled: bool = True) -> TreeProblem:
        return tree_problem(
            self._arcs(given, self.hash_bits),
            given.lengths,
            given.heads if labelled else None,
            projective=self.projective,
            single_root=self.single_root_,
            dtype=self._dtype,
        )

    def _read(self, X: Any, y: Any = None) -> Sentences:
        self._require_fitted()
        return read_sentences(X, y, self.columns, self.columns_)

    # -- answers ------------------------------------------------------------------------------------------------------

    def predict(self, X) -> list[Tree]:
        """The tree of highest score of each sentence."""
        given = self._read(X)
        heads, relations = self._parse(given)
        bounds = list(zip(given.words.starts[:-1].tolist(), given.words.starts[1:].tolist(), strict=True))
        return [Tree(heads[a:b].tolist(), None if relations is None else relations[a:b]) for a, b in bounds]

    def _parse(self, given: Sentences) -> tuple[np.ndarray, list[str] | None]:
        """Heads and relations, sentences end to end."""
        problem = self._problem(given, labelled=False)
        heads = best_outputs(problem, self.weights_, self.n_jobs)[0].astype(np.int64)
        self.proven_ = 1.0
        if isinstance(problem, SecondOrderProblem) and len(problem.status):
            self.proven_ = 1.0 - float((problem.status & NOT_PROVEN).mean()) / NOT_PROVEN
        return heads, self._relations_of(given, heads)

    def _relations_of(self, given: Sentences, heads: np.ndarray) -> list[str] | None:
        if not len(self.classes_):
            return None
        rows = relation_rows(self, given, heads)
        codes = best_outputs(multiclass_problem(rows, None, len(self.classes_)), self.relation_weights_, self.n_jobs)[0]
        return list(map(self.classes_.tolist().__getitem__, codes.tolist()))

    def parse(self, treebank) -> str:
        """The text of a treebank with the predicted heads and relations in it; all else as it was."""
        return treebank.with_trees(*self._parse(self._read(treebank)))

    def attachment(self, X, y=None, *, ignore=None, subtypes: bool = True) -> AttachmentScores:
        """UAS, LAS and the like (see `partwise.metrics.attachment_scores`)."""
        given = self._read(X, y)
        if given.heads is None:
            raise ValueError("There are no trees to compare with: give y, or a treebank with heads.")
        heads, found = self._parse(given)
        truth = None if given.relations is None or found is None else [name or "_" for name in given.relations]
        starts = given.words.starts
        return attachment_scores(given.heads, heads, truth, found, starts=starts, ignore=ignore, subtypes=subtypes)

    def score(self, X, y=None) -> float:
        """LAS, or UAS where there are no relations."""
        scores = self.attachment(X, y)
        return scores.las if scores.las == scores.las else scores.uas

    def predict_marginals(self, X) -> list[np.ndarray]:
        """P(h -> m | x) of every arc, arrays (words, words + 1) with a column for each head. Refused for margin losses."""
        beta = self._beta()
        given = self._read(X)
        problem = self._problem(given, labelled=False)
        if isinstance(problem, TreeProblem):
            return [passes.parts(problem, i, self.weights_, beta).reshape(n, n + 1) for i, n in enumerate(given.lengths)]
        found = []
        for i, n in enumerate(given.lengths):
            p, a, b = passes.parts(problem, i, self.weights_, beta), *problem.arcs[i : i + 2]
            found.append(np.zeros((n, n + 1)))
            found[-1][problem.word[a:b] - 1, problem.head[a:b]] = p[: b - a]
        return found

    def predict_kbest(self, X, k: int = 5) -> list[list[tuple[list[int], float]]]:
        """For each sentence a list of at most k pairs (heads, score), best first. k * words calls of the oracle.

        With ``order=2``, whose best trees are searched for, trees may be missing.
        """
        check_k(k)
        given = self._read(X)
        return self._kbest(self._problem(given, labelled=False), k, given.words.starts, lambda i, heads: heads.tolist())

    # -- the model file -----------------------------------------------------------------------------------------------

    def _to_file(self):
        header = {
            "columns": list(self.columns_),
            "single_root": bool(self.single_root_),
            "tags": list(self.tags_),
            **({"labels": self.classes_} if len(self.classes_) else {}),
        }
        return header, {"relation_weights": self.relation_weights_} | (
            {"pruner_weights": self.pruner_weights_} if self.order == 2 else {}
        )

    def _from_file(self, header, tensors, need):
        labelled = "labels" in header and header.get("labelled") is not False  # once there was a label to stand for none
        self.classes_ = labels_in(header) if labelled else np.array([], object)
        if not all(isinstance(name, str) for name in self.classes_.tolist()):
            raise ValueError("relations are not all strings")
        self.columns_ = tuple(need(header, "columns", list))
        if not self.columns_ or not all(isinstance(name, str) for name in self.columns_):
            raise ValueError("columns are not names")
        arcs, pairs = self._templates()
        compile_arc_templates(arcs, self.columns_)  # or it says what is wrong with them
        if self.order == 2:
            compile_pair_templates(pairs, self.columns_)
        self.single_root_ = header.get("single_root") is True
        self.tags_ = tuple(map(str, header.get("tags") or ()))
        self.relation_weights_ = tensors["relation_weights"]
        if self.order == 2:
            pruner = tensors.get("pruner_weights")
            kept = self.weights_
            if pruner is None or (pruner.shape, pruner.dtype) != (kept.shape, kept.dtype) or not np.isfinite(pruner).all():
                raise ValueError("the weights of the model that chooses arcs are missing, or not as many as those of arcs")
            self.pruner_weights_ = pruner
        wanted = (1 << RELATION_BITS) * len(self.classes_)
        found = self.relation_weights_
        if found.ndim != 1 or found.size != wanted or found.dtype != self.weights_.dtype or not np.isfinite(found).all():
            raise ValueError(f"there are {found.size} weights of relations where the model needs {wanted}")
        return 1 << self.hash_bits
