"""What all estimators share: parameters (`parameters`), solving (`solving`); here probabilities and the model file.

An estimator is thin. It validates what users give, packs it into a problem, calls a solver, and unpacks weights and outputs;
nothing numerical happens here. Nothing imports scikit-learn, either: see `partwise.tasks.common.sklearn_face`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from partwise import kernels, passes
from partwise.features.sparse_weights import SparseWeights
from partwise.objective import likeliest_beta
from partwise.tasks.common.parameters import Parameters
from partwise.tasks.common.solving import Solving

if TYPE_CHECKING:
    from partwise.tasks.common.packed_corpus import PackedCorpus


@dataclass(eq=False, repr=False)
class Structured(Solving):
    """Base of all estimators."""

    training_: dict[str, Any] | None = field(init=False, default=None)  #: notes about the training, for people
    sklearn_mixins: ClassVar[tuple[str, ...]] = ()  #: of scikit-learn's, besides `BaseEstimator`

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn is told, once it has put its face on: data of most tasks are no matrix, and hold the truth too."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = False
        tags.input_tags.two_d_array = False
        return tags

    # -- examples -----------------------------------------------------------------------------------------------------

    @property
    def _previous_weights(self) -> np.ndarray | None:
        """Of the previous fit, if this one is to go on from them."""
        return self.weights_ if self.warm_start and hasattr(self, "weights_") else None

    def _hold_out(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the examples to train on and of those to stop by."""
        held = max(1, round(self.validation_fraction * n))
        if held >= n:
            raise ValueError(f"early_stopping=True needs at least two examples to hold one out. Got {n}.")
        order = np.random.default_rng((seed, 1)).permutation(n)
        return np.sort(order[held:]), np.sort(order[:held])

    def _parts(self, given: Any, weight: np.ndarray, validation: Any, read: Callable, seed: int) -> tuple[Any, np.ndarray, Any]:
        """Examples to train on, without those of weight zero, their weights, and examples to stop by, or None."""
        held = None
        if validation is not None:
            held = read(*(validation if isinstance(validation, tuple) else (validation, None)))
        elif self.early_stopping:
            kept, out = self._hold_out(len(weight), seed)
            held, given, weight = given.take(out), given.take(kept), weight[kept]
        if (weight == 0).any():
            given, weight = given.take(np.flatnonzero(weight)), weight[weight > 0]
        return given, weight, held

    # -- examples on disk ---------------------------------------------------------------------------------------------

    def _fit_packed(self, corpus: PackedCorpus, given: Any, validation: Any, checkpoint: Any) -> Any:
        """Train on a packed corpus; `given`: labels or weights that came with it, of which there may be none."""
        loss = self._check_parameters()
        if any(one is not None for one in given):
            raise ValueError("A PackedCorpus has its labels and weights: give it alone.")
        if not isinstance(self, corpus.task.core):
            raise TypeError(f"{corpus!r} cannot be learnt by a {self._who}.")
        if self._previous_weights is not None:
            raise ValueError("warm_start=True cannot go on with a PackedCorpus, which has a vocabulary of its own.")
        self._adopt(corpus)
        problem, weight, shards = corpus.verified().problem, corpus.weight, corpus.shards
        held = None
        if validation is not None:
            held = self._judge_by(validation, problem)
        elif self.early_stopping:  # the last ones: taking any others would copy all that is left
            n = kernels.n_examples(problem)
            kept = n - len(self._hold_out(n, 0)[1])
            held, problem = kernels.take(problem, slice(kept, n)), kernels.take(problem, slice(0, kept))
            weight, shards = None if weight is None else weight[:kept], np.unique(np.minimum(shards, kept))
        seed = self._seed()
        self._solve(problem, loss, weight, held, None, seed, checkpoint, corpus, shards)
        for name, beside, own in corpus.beside():
            setattr(self, f"{name}_weights_", self._solve_beside(name, beside, loss, own, seed))
        self._solved(problem)
        return self

    def _solved(self, problem: Any) -> None:
        """What is to be told of a problem when it is solved."""

    def _adopt(self, corpus: PackedCorpus) -> None:
        """Take over what was learnt while packing; parameters that decide what was packed must be those, or not given."""
        model, free = corpus.sound_model(), {field.name for field in dataclasses.fields(Parameters)}
        defaults = type(self)().parameters()
        for name, packed in model.parameters().items():
            mine = getattr(self, name)
            if name in free or same(mine, packed):
                continue
            if not same(mine, defaults[name]):
                raise ValueError(
                    f"{corpus!r} was packed with {name}={packed!r}, and this {self._who} has {name}={mine!r}. It decides what "
                    "is packed: leave it out, or pack again."
                )
            setattr(self, name, packed)
        for name, value in vars(model).items():
            if name not in model.parameters() and name != "weights_":
                setattr(self, name, value)

    def _judge_by(self, validation: Any, problem: Any) -> Any:
        """What held-out data say of weights, for a model that has learnt everything else."""
        raise NotImplementedError

    # -- answers ------------------------------------------------------------------------------------------------------

    def _kbest(self, problem: Any, k: int, starts: np.ndarray, answer: Callable[[int, np.ndarray], Any]) -> list[list[Any]]:
        """For each example i a list of at most k pairs (answer(i, output), score), best first; outputs begin at `starts`."""
        return self._candidates(*passes.kbest(problem, self.weights_, int(k), self.n_jobs), starts, answer)

    @staticmethod
    def _candidates(
        out: np.ndarray, values: np.ndarray, found: np.ndarray, starts: np.ndarray, answer: Callable[[int, np.ndarray], Any]
    ) -> list[list[Any]]:
        """The k best outputs of all examples, end to end, as such lists."""
        return [
            [(answer(i, out[j, starts[i] : starts[i + 1]]), float(values[i, j])) for j in range(int(n))]
            for i, n in enumerate(found)
        ]

    # -- probabilities ------------------------------------------------------------------------------------------------

    def _beta(self) -> float:
        """The inverse temperature of the model's distribution p(y | x) ~ exp(beta s(y))."""
        self._require_fitted()
        if self.temperature_ is None:
            raise ValueError(self._no_probabilities())
        return 1.0 / self.temperature_

    def _no_probabilities(self) -> str:
        return (
            f"This {self._who} was trained with the loss {self._loss().name!r}, which fits scores, not probabilities. "
            "Call calibrate(X, y) with held-out data first, or train with loss='crf' or 'softmax_margin'."
        )

    def _calibrate(self, problem: Any) -> None:
        """Take the temperature of highest likelihood."""
        self.temperature_ = 1.0 / likeliest_beta(problem, self.weights_, self.n_jobs)

    # -- weights of a model that was read ------------------------------------------------------------------------------

    @property
    def _kept_weights(self) -> Any:
        """An array or `SparseWeights`: what oracles are to see. Lists, if they were read as such and nobody has looked since."""
        return self.__dict__["weights_"] if "weights_" in self.__dict__ else self.__dict__["_lists"]

    def _keep_weights(self, w: np.ndarray | SparseWeights) -> None:
        if isinstance(w, np.ndarray):
            self.weights_ = w if w.flags.writeable else w.copy()
        else:
            self._lists = w

    def __getattr__(self, name: str) -> Any:
        """`weights_` of a model that keeps lists: written out when first asked for, since who has an array may edit it."""
        if name == "weights_" and "_lists" in self.__dict__:
            self.weights_ = self.__dict__.pop("_lists").dense()
            return self.weights_
        return object.__getattribute__(self, name)  # not there: in the words of who has hidden it, if anybody has

    def _label_rows(self) -> tuple[int, int] | None:
        """(features, labels), if the first weights are a matrix of these that oracles read by `features.rows.emit` alone."""
        return None

    # -- the model file -----------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to one file, atomically (see `partwise.tasks.common.model_file`). No pickle."""
        from partwise.tasks.common import model_file

        self._require_fitted()
        model_file.save(self, path)

    @classmethod
    def load(cls, path: Any) -> Any:
        """Read a model written by `save`. Never executes code from the file."""
        from partwise.tasks.common import model_file

        estimator = model_file.load(path)
        if not isinstance(estimator, cls):
            raise model_file.ModelFileError(f"{path} holds a {type(estimator).__name__}, not a {cls.__name__}.")
        return estimator

    @property
    def _is_fitted(self) -> bool:
        return "weights_" in self.__dict__ or "_lists" in self.__dict__

    def _require_fitted(self, attribute: str = "weights_") -> Any:
        """The weights as they are kept, or the error that scikit-learn expects of a fitted attribute asked for too early."""
        if not self._is_fitted:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"This {self._who} instance is not fitted yet: it has no {attribute!r}. Call 'fit' first.")
        return self._kept_weights


def is_corpus(X: Any) -> bool:
    """Whether it is a `PackedCorpus`; without importing it, for where nobody has, there can be none."""
    module = sys.modules.get("partwise.tasks.common.packed_corpus")
    return module is not None and isinstance(X, module.PackedCorpus)


def same(a: Any, b: Any) -> bool:
    """Whether two values of a parameter are equal, arrays too."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return type(a) is type(b) and bool(a == b)
