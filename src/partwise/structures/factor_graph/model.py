"""`FactorGraph`: any model of variables, soft factors and hard constraints in a few lines; ask it, or learn its weights.

    g = FactorGraph()
    x = g.variables((20, 20), states=5)                    # arrays of variables, sliced like any array
    g.unary(x, scores)                                     # (20, 20, 5)
    g.pairwise(x[:-1], x[1:], np.eye(5))                   # a Potts model
    g.pairwise(x[:, :-1], x[:, 1:], np.eye(5))
    answer = g.best()                                      # answer.of(x), answer.value, answer.bound, answer.proven
    beliefs = g.marginals()                                # beliefs.of(x), beliefs.log_partition, beliefs.converged

What is to be learnt has features instead of scores, and a name for its weights; `graph_problem` packs graphs for
`partwise.solve`:

    g.unary(x, features=pixels, weights="pixel")
    g.pairwise(x[:-1], x[1:], features=contrast, weights="edge")

The API is in the spirit of lp-sparsemap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.structures.factor_graph.answers import (
    Answer,
    Beliefs,
    answer_by_highs,
    find_best,
    find_marginals,
    refuse_infeasible,
)
from partwise.structures.factor_graph.description import Description, Factors, Scored, WeightBlock, tie_entries
from partwise.structures.factor_graph.layout import (
    AND_OUT,
    AT_MOST_ONE,
    BUDGET,
    DENSE,
    HEAD,
    IMPLY,
    KNAPSACK,
    NAMES,
    ONE_OF_K,
    OR,
    PROJECTIVE,
    SINGLE_ROOT,
    TREE,
    WRITTEN,
    XOR,
)
from partwise.structures.factor_graph.packing import graph_problem
from partwise.structures.factor_graph.statements import MOST_ENTRIES, Literals, Variables, allowed_by, with_room


class FactorGraph:
    """Variables, scores and constraints. See the module for how it reads, and `layout` for what the factors mean.

    Examples
    --------
    >>> g = FactorGraph()
    >>> x = g.variables(2, states=3)
    >>> g.unary(x, [[0.0, 1.0, 0.0], [0.5, 0.0, 0.0]])
    >>> g.pairwise(x[:1], x[1:], 2.0 * np.eye(3))  # they want to be the same
    >>> answer = g.best()
    >>> answer.of(x).tolist(), float(answer.value)
    ([1, 1], 3.0)
    """

    def __init__(self) -> None:
        self._states: list[np.ndarray] = []
        self._unary: list[tuple[np.ndarray, Scored]] = []
        self._factors: list[Factors] = []
        self._n = 0
        self._firsts: np.ndarray | None = None  # where the states of each variable begin, once somebody has asked

    # -- variables ----------------------------------------------------------------------------------------------------

    def variables(self, shape: int | tuple[int, ...] = (), states: int = 2) -> Variables:
        """An array of variables with so many states each, one or more."""
        if not (isinstance(states, int | np.integer) and states >= 1):
            raise ValueError(f"The 'states' parameter must be an int in the range [1, inf). Got {states!r} instead.")
        x = self._new(shape, int(states), False)
        if states == 1:
            self._unary.append((x.numbers.reshape(-1), Scored(np.tile([0.0, -np.inf], (x.numbers.size, 1)))))
        return x

    def bits(self, shape: int | tuple[int, ...] = ()) -> Variables:
        """An array of variables that are false (0) or true (1); the score of one is that of its being true."""
        return self._new(shape, 2, True)

    def _new(self, shape, states, is_bit) -> Variables:
        numbers = np.arange(self._n, self._n + int(np.prod(shape, dtype=int))).reshape(shape)
        self._n += numbers.size
        self._states.append(np.full(numbers.size, 1 if is_bit else max(states, 2)))
        self._firsts = None
        return Variables(numbers, states, is_bit)

    @property
    def n_variables(self) -> int:
        """How many variables there are."""
        return self._n

    # -- soft factors -------------------------------------------------------------------------------------------------

    def unary(self, x: Variables, scores: Any = None, *, features: Any = None, weights: str = "unary") -> None:
        """Scores of states: an array (..., states), or (...) for bits; or features (..., d) and a name for their weights."""
        size, n = 1 if x.is_bit else x.n_states, x.numbers.size
        scored = self._scored("unary", scores, features, weights, None, n, size)
        if x.n_states == 1 and scored.given is not None:
            scored = with_room(scored, [1], [x.n_stored])
        self._unary.append((x.numbers.reshape(-1), scored))

    def pairwise(
        self, x: Variables, z: Variables, scores: Any = None, *, features: Any = None, weights: str = "pairwise", tie: Any = None
    ) -> None:
        """Scores of pairs of states: (states of x, states of z), the same for all pairs or one table each.

        With `features`, an array (..., d), default a single 1, the tables are learnt. `tie` says which entries share a weight:
        "potts" (one weight, for equal states), "symmetric", "antisymmetric" (a pair in the other order has the weight with the
        other sign; equal states have none), or an array like the table: numbers of weights, -1 for none.
        """
        self.dense([x, z], scores, features=features, weights=weights, tie=tie)

    def dense(
        self, xs: Sequence[Variables], scores: Any = None, *, features: Any = None, weights: str = "dense", tie: Any = None
    ) -> None:
        """Factors over k variables each, with a score for every combination of their states."""
        shapes = [x.numbers.shape for x in xs]
        try:
            columns = [c.reshape(-1) for c in np.broadcast_arrays(*(x.numbers for x in xs))]
        except ValueError:
            raise ValueError(f"The variables of dense factors must be arrays of one shape. Got shapes {shapes}.") from None
        if len(xs) < 2:
            raise ValueError("A dense factor is over two variables or more; give scores of one variable with unary.")
        members = np.stack(columns, axis=1)
        if (np.sort(members, axis=1)[:, 1:] == np.sort(members, axis=1)[:, :-1]).any():
            bad = np.flatnonzero((np.sort(members, axis=1)[:, 1:] == np.sort(members, axis=1)[:, :-1]).any(axis=1))[0]
            raise ValueError(f"dense factor {bad}: a variable is in it twice.")
        sizes, stored = [x.n_states for x in xs], [x.n_stored for x in xs]
        entries = int(np.prod(sizes))
        ports = [1 if x.is_bit else x.n_stored for x in xs]
        first = self._first()
        blocks = [first[c][:, None] + np.arange(p) for c, p in zip(columns, ports, strict=True)]
        literal = np.concatenate(blocks, axis=1).reshape(-1)
        if scores is None and features is None:
            features = np.ones((len(members), 1))
        scored = self._scored("dense", scores, features, weights, tie_entries(tie, sizes), len(members), entries, sizes)
        if sizes != stored:
            scored, entries = with_room(scored, sizes, stored), int(np.prod(stored))
        self._add(
            DENSE, members, np.full(len(members), sum(ports)), literal, np.zeros(len(literal), int), 0, entries, scored, None
        )

    def _scored(self, who, scores, features, weights, tie, n, size, sizes=None) -> Scored:
        if (scores is None) == (features is None):
            raise ValueError(f"{who}: give either scores or features.")
        if scores is not None:
            table = np.asarray(scores, float)
            if table.size not in (size, n * size):
                shape = (
                    f"{tuple(sizes)}, or one such table for each of the {n} factors"
                    if sizes
                    else f"(..., {size}) for {n} variables"
                )
                raise ValueError(f"{who}: scores must have shape {shape}. Got {np.asarray(scores).shape}.")
            table = table.reshape(-1, size)
            if np.isnan(table).any() or (table == np.inf).any():
                bad = np.argwhere(np.isnan(table) | (table == np.inf))[0]
                raise ValueError(
                    f"{who} {bad[0]}: scores must be numbers, or -inf for what is forbidden. Got {table[tuple(bad)]}."
                )
            return Scored(np.broadcast_to(table, (n, size)))
        if not hasattr(features, "tocsr"):
            features = np.asarray(features, float)
            features = features.reshape(n, -1) if n else np.zeros((0, features.shape[-1] if features.ndim else 1))
            if not np.isfinite(features).all():
                bad = np.argwhere(~np.isfinite(features))[0]
                raise ValueError(
                    f"{who} {bad[0]}, feature {bad[1]}: features must be finite numbers. Got {features[tuple(bad)]}."
                )
        if features.shape[0] != n:
            raise ValueError(f"{who}: expected {n} rows of features, got {features.shape[0]}.")
        return Scored(None, features, str(weights), tie)

    # -- hard factors -------------------------------------------------------------------------------------------------

    def xor(self, literals: Any, name: str = "") -> None:
        """Exactly one holds. Of all hard factors: an array (factors, ports) of literals, or (ports,) for one factor."""
        self._hard(XOR, literals, name)

    def at_most_one(self, literals: Any, name: str = "") -> None:
        """None or one holds."""
        self._hard(AT_MOST_ONE, literals, name)

    def or_(self, literals: Any, name: str = "") -> None:
        """At least one holds."""
        self._hard(OR, literals, name)

    def and_out(self, conditions: Any, out: Any, name: str = "") -> None:
        """`out` holds if and only if all conditions do."""
        self._hard(AND_OUT, [conditions, out], name)

    def imply(self, conditions: Any, out: Any, name: str = "") -> None:
        """`out` holds if all conditions do."""
        self._hard(IMPLY, [conditions, out], name)

    def budget(self, literals: Any, most: int, name: str = "") -> None:
        """At most so many hold."""
        if not (isinstance(most, int | np.integer) and most >= 0):
            raise ValueError(f"The 'most' parameter of budget must be an int in the range [0, inf). Got {most!r} instead.")
        self._hard(BUDGET, literals, name, number=int(most))

    def knapsack(self, literals: Any, costs: Any, most: int, name: str = "") -> None:
        """What those that hold cost is at most `most` in sum; `costs` are whole numbers, one for each literal, 0 or more.

        Searching it takes O(literals x most) time and memory: give costs in the largest unit that is exact.
        """
        given = self._literals(literals)
        numbers = np.atleast_2d(given.numbers)
        found = np.asarray(costs)
        if found.dtype.kind not in "iuf" or (found != np.floor(found)).any() or (found < 0).any():
            raise ValueError(
                f"The 'costs' of knapsack{f' {name!r}' if name else ''} must be whole numbers from 0 on. Got {costs!r}."
            )
        if found.size and found.shape not in (numbers.shape, numbers.shape[1:]):
            raise ValueError(f"knapsack: expected {numbers.shape[1]} costs, one for each literal. Got shape {found.shape}.")
        if not (isinstance(most, int | np.integer) and most >= 0):
            raise ValueError(f"The 'most' parameter of knapsack must be an int in the range [0, inf). Got {most!r} instead.")
        members = np.broadcast_to(found.astype(np.int64), numbers.shape)
        self._hard(KNAPSACK, given, name, number=int(most), members=members)

    def head(
        self,
        heads: Variables | None,
        left: Any,
        right: Any,
        *,
        grandparents: Any = None,
        siblings: Any = None,
        name: str = "",
    ) -> None:
        """A head automaton, with scores of grandparents: all arcs at one word (see `partwise.structures.factor_graph.head`).

        Parameters
        ----------
        heads : Variables or None
            One variable of G states, the word's own head; None for the root, or where grandparents have no scores.
        left, right : literals, or ()
            The L and R arcs out of the word on each side, from near to far.
        grandparents : array (G, L + R), optional
            Scores of an arc out, those on the left first, if the word's head is g.
        siblings : pair of arrays (L, L) and (R, R), optional
            ``[m, s]`` scores arc m of a side if arc s - 1 is the last one before it that holds, or if there is none (s = 0); what
            is above the diagonal is not looked at.
        """
        sides = [self._literals(one) if isinstance(one, Variables | Literals) or len(one) else None for one in (left, right)]
        L, R = (0 if one is None else one.numbers.size for one in sides)
        if L + R == 0:
            raise ValueError(f"head{f' {name!r}' if name else ''}: there are no arcs.")
        if heads is not None and (heads.is_bit or heads.numbers.size != 1 or heads.n_states < 2):
            raise ValueError("head: 'heads' is one variable of k states, two or more, or None.")
        G = 0 if heads is None else heads.n_states
        table = np.zeros((G, L + R)) if grandparents is None else np.asarray(grandparents, float)
        if table.shape != (G, L + R):
            raise ValueError(f"head: grandparents must have shape ({G}, {L + R}). Got {table.shape}.")
        given = [np.zeros((n, n)) for n in (L, R)] if siblings is None else [np.asarray(one, float) for one in siblings]
        if [one.size for one in given] != [L * L, R * R]:
            raise ValueError(f"head: siblings must be arrays ({L}, {L}) and ({R}, {R}). Got {[one.shape for one in given]}.")
        tables = [table.reshape(-1)]
        for n, one in zip((L, R), given, strict=True):
            tables.append(one.reshape(n, n)[np.tril_indices(n)])
        entries = np.concatenate(tables)
        scored = self._scored("head", entries, None, "", None, 1, len(entries))
        parts = [one for one in sides if one is not None]
        if heads is not None:
            states = Variables(np.repeat(heads.numbers.reshape(-1), G), G, False)
            parts.insert(0, states.is_(np.arange(G)))
        every = self._literals(parts)
        if every.negated.any():
            raise ValueError("head: arcs cannot be negated.")
        if len(np.unique(every.numbers[G:])) < L + R or (G and (every.numbers[G:] == every.numbers[0]).any()):
            raise ValueError("head: a variable is in it twice.")
        literal = self._first()[every.numbers] + every.states
        members, none = np.array([[G, L, R]]), np.zeros(len(literal), int)
        self._add(HEAD, members, np.array([len(literal)]), literal, none, 0, len(entries), scored, name)

    def factor(self, literals: Any, written: Any, name: str = "") -> None:
        """A factor that you have written: an object with a method `best`, for sums `expected`.

        ``best(scores)`` returns the highest score of a configuration, the scores of its literals and whatever it has of its own,
        and which literals hold in it; ``expected(scores)`` the log of the sum over configurations and the probability of each
        literal (see `partwise.structures.factor_graph.written`). A graph with such a factor is searched by the interpreter.

        Parameters
        ----------
        literals : array (factors, ports) of literals, or (ports,) for one factor
        written : object
        name : str
        """
        if not callable(getattr(written, "best", None)):
            raise TypeError(f"factor: the object must have a method best(scores). Got {type(written).__name__}.")
        given = self._literals(literals)
        numbers = np.sort(np.atleast_2d(given.numbers), axis=1)
        if (numbers[:, 1:] == numbers[:, :-1]).any():
            raise ValueError(f"factor{f' {name!r}' if name else ''}: a variable is in it twice.")
        self._hard(WRITTEN, given, name or type(written).__name__)
        self._factors[-1].written = written

    def one_of_k(self, x: Variables, literals: Any, name: str = "") -> None:
        """Literal s holds if and only if x, a variable of k states, is in state s: its one-hot code."""
        if x.is_bit or x.numbers.size != 1:
            raise ValueError("one_of_k is about one variable of k states.")
        if x.n_states < 2:
            raise ValueError("one_of_k: a variable of one state has no code.")
        states = Variables(np.repeat(x.numbers.reshape(-1), x.n_states), x.n_states, False).is_(np.arange(x.n_states))
        code = self._literals(literals)
        if code.numbers.size != x.n_states:
            raise ValueError(f"one_of_k needs a literal for each of the {x.n_states} states. Got {code.numbers.size}.")
        self._hard(ONE_OF_K, [states, code], name, members=x.numbers.reshape(1, 1))

    def tree(
        self, arcs: Any, heads: Any, words: Any, *, single_root: bool = True, projective: bool = False, name: str = ""
    ) -> None:
        """The arcs heads -> words that hold are a tree below 0, the root; words are numbered from 1. Arcs left out never hold."""
        arcs, heads, words = self._literals(arcs), np.asarray(heads, int).reshape(-1), np.asarray(words, int).reshape(-1)
        if not (arcs.numbers.size == heads.size == words.size):
            raise ValueError(
                f"tree: {arcs.numbers.size} arcs, {heads.size} heads, {words.size} words; give one of each for every arc."
            )
        n = int(words.max(initial=0))
        if heads.size and (heads.min() < 0 or heads.max() > n or words.min() < 1 or (heads == words).any()):
            raise ValueError(f"tree: heads must be 0 (the root) to {n}, words 1 to {n}, and no word its own head.")
        code = (words - 1) * (n + 1) + heads
        if len(np.unique(code)) < len(code):
            raise ValueError("tree: an arc is given twice.")
        members = np.array([[n, SINGLE_ROOT * bool(single_root) + PROJECTIVE * bool(projective)]])
        self._hard(TREE, arcs, name, members=members, mark=code)

    def _literals(self, given: Any) -> Literals:
        if isinstance(given, Literals):
            return given
        if isinstance(given, Variables):
            if not given.is_bit:
                raise TypeError(
                    f"Say which of its {given.n_states} states is meant: x.is_(state). Only bits are literals themselves."
                )
            return given.is_(1)
        if isinstance(given, list | tuple) and given:
            parts = [self._literals(part) for part in given]
            parts = [part[..., None] if part.numbers.ndim == 0 else part for part in parts]
            deep = max(part.numbers.ndim for part in parts)
            parts = [part if part.numbers.ndim == deep else part[:, None] for part in parts]
            return Literals(
                np.concatenate([part.numbers for part in parts], axis=-1),
                np.concatenate([part.states for part in parts], axis=-1),
                np.concatenate([part.negated for part in parts], axis=-1),
            )
        raise TypeError(f"Expected bits, literals (x.is_(state)), or a list of them. Got {given!r}.")

    def _hard(self, kind, literals, name, number=0, members=None, mark=None) -> None:
        given = self._literals(literals)
        numbers = np.atleast_2d(given.numbers)
        F, n = numbers.shape if given.numbers.size else (0, 0)
        if n == 0:
            raise ValueError(f"{NAMES[kind]}{f' {name!r}' if name else ''}: there are no literals.")
        flat = numbers.reshape(-1)
        literal = self._first()[flat] + given.states.reshape(-1)
        if kind != ONE_OF_K:
            twice = np.sort(numbers, axis=1)
            if (twice[:, 1:] == twice[:, :-1]).any():
                self._hard_by_table(kind, given, name, number, members)
                return
        negated = given.negated.reshape(-1)
        if mark is not None and negated.any():
            raise ValueError("tree: arcs cannot be negated.")
        mark = negated.astype(int) if mark is None else mark
        members = np.zeros((F, 0), int) if members is None else members
        self._add(kind, members, np.full(F, n), literal, mark, number, 0, None, name)

    def _hard_by_table(self, kind, given: Literals, name: str, number: int, members: Any) -> None:
        """Factors of logic that say more than one thing of a variable: as tables of what they allow, factor by factor."""
        called = f"{NAMES[kind]}{f' {name!r}' if name else ''}"
        states, first = np.concatenate(self._states), self._first()
        rows = [np.atleast_2d(part) for part in (given.numbers, given.states, given.negated)]
        for k, (numbers, wanted, negated) in enumerate(zip(*rows, strict=True)):
            own, of = np.unique(numbers, return_inverse=True)
            sizes = np.maximum(states[own], 2)
            entries = int(np.prod(sizes.astype(float)))
            if kind == TREE or entries > MOST_ENTRIES:
                why = "" if kind == TREE else f", and its table would have {entries} entries; {MOST_ENTRIES} are the most"
                raise ValueError(f"{called}: a variable is in it twice{why}.")
            outputs = np.stack(np.unravel_index(np.arange(entries), sizes))
            holds = (outputs[of] == np.where(states[numbers] == 1, 1, wanted)[:, None]) != negated[:, None]
            fine = allowed_by(kind, holds, number, None if members is None else members[k])
            table = np.where(fine, 0.0, -np.inf)
            literal = np.concatenate([first[v] + np.arange(states[v]) for v in own])
            mark, one = np.zeros(len(literal), int), np.array([len(literal)])
            self._add(DENSE, own[None, :], one, literal, mark, 0, entries, Scored(table[None, :]), name, called)

    def _add(self, kind, members, sizes, literal, mark, number, entries, scored, name, called=None) -> None:
        called = called or f"{NAMES[kind]}{f' {name!r}' if name else ''}"
        names = [called + (f" {k}" if len(sizes) > 1 else "") for k in range(len(sizes))]
        self._factors.append(Factors(kind, members, sizes, literal, mark, number, entries, scored, names))

    def _first(self) -> np.ndarray:
        if self._firsts is None:
            self._firsts = np.concatenate([[0], np.cumsum(self.describe().states)])
        return self._firsts

    # -- answers ------------------------------------------------------------------------------------------------------

    def describe(self) -> Description:
        """What packing needs to know."""
        states = np.concatenate(self._states or [np.zeros(0, int)]).astype(np.int64)
        return Description(states, list(self._unary), list(self._factors))

    def best(self, method: str = "auto", w: Any = None, families: dict[str, WeightBlock] | None = None, **search: Any) -> Answer:
        """The best output.

        Parameters
        ----------
        method : "auto", "ad3", "exact", "highs" or "lp"
            auto: exact in forests, else AD3. ad3: AD3 in any case. exact: branch and bound where AD3 leaves a gap. highs: scipy's
            mixed-integer solver. lp: its linear one; the value is that of the relaxation, and states may be fractions.
        w, families : weights and where they are, if scores are learnt
        search : see `partwise.structures.factor_graph.problem.Search`

        Raises ValueError, with the names of factors that cannot hold together, if hard factors allow nothing.
        """
        methods = ("auto", "ad3", "exact", "highs", "lp")
        if method not in methods:
            raise ValueError(f"The 'method' parameter must be one of {', '.join(methods)}. Got {method!r} instead.")
        problem = graph_problem([self], families=families, **search)
        if method in ("highs", "lp"):
            answer = answer_by_highs(problem, 0, w, method == "highs")
        else:
            answer = find_best(problem, 0, w, method)
        if answer.value == -np.inf:
            refuse_infeasible(problem, 0, [name for g in self._factors for name in g.names])
        return answer

    def marginals(self, w: Any = None, families: dict[str, WeightBlock] | None = None, **search: Any) -> Beliefs:
        """Probabilities of states under p(y) ~ exp(s(y)): exact in forests, else by belief propagation (see its `converged`)."""
        problem = graph_problem([self], families=families, **search)
        beliefs = find_marginals(problem, 0, w)
        if beliefs.log_partition == -np.inf:
            refuse_infeasible(problem, 0, [name for g in self._factors for name in g.names])
        return beliefs
