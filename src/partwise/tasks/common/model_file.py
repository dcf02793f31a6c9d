"""The model file: one safetensors file, tensors and a JSON header, versioned, checked on load, written atomically. No pickle.

Any safetensors reader sees the tensors. Our header is JSON text under the key ``partwise`` of the file's metadata::

    {"format": "partwise-model", "format_version": 4, "partwise_version": "0.1.0", "estimator": "SequenceLabeler",
     "parameters": {...}, "model": {"labels": ..., "n_features": ..., "temperature": ..., ...}, "crc32": {"weights": 123, ...}}

Where most weights are zero, those are not kept, and weights may have fewer digits: see `partwise.tasks.common.weight_tensors`,
which has the format versions up to 3 too. Since version 4 the header has a digest of its own (`partwise.files.tensors`).

Loading executes nothing from the file: estimators, losses and solvers are looked up by name in fixed tables, and every value is
built from JSON numbers and strings. Sizes come from the tensors really present, so a header cannot make the reader allocate (of
sparse weights, 64 times the size of the file at most).

Writing is atomic (`partwise.files.whole_file`): a full disk or a kill leaves the old model as it was.
"""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any

import numpy as np

from partwise.features.given_labels import LONGEST
from partwise.features.sparse_weights import n_not_zero, without_small
from partwise.files.named_arrays import dtype_called
from partwise.files.tensors import SEALED, ModelFileError, read_tensors, write_tensors
from partwise.files.version import __version__
from partwise.losses.records import LOSS_KINDS, Family
from partwise.tasks.common.registry import BY_ESTIMATOR
from partwise.tasks.common.weight_tensors import PRECISIONS, all_finite, from_tensors, to_tensors

FORMAT = "partwise-model"
FORMAT_VERSION = SEALED[FORMAT]  #: that is written; earlier ones are read
#: the family was there first, and its files say so
LOSS_TAGS: dict[str, Any] = {"loss" if kind is Family else name: kind for name, kind in LOSS_KINDS.items()}

NOT_SAVED = ("callbacks", "engine", "mixing_epochs", "mixing_parts")  # code, and where it was trained


# ---------------------------------------------------------------------------------------------------------------------
# Values as JSON, and back
# ---------------------------------------------------------------------------------------------------------------------


def to_json(value: Any, what: str) -> Any:
    """`value` as JSON from which `from_json` makes exactly the same again; raises TypeError for what cannot be kept."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.generic) and value.dtype.kind in "biufU" and value.dtype.itemsize <= 8 or isinstance(value, np.str_):
        return {"numpy": [value.dtype.str, to_json(value.item(), what)]}
    if type(value) in (list, tuple, set, frozenset):
        items = [to_json(item, what) for item in value]
        return items if type(value) is list else {type(value).__name__: items}
    if type(value) is dict:
        return {"dict": [[to_json(key, what), to_json(item, what)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and (
        (value.ndim in (1, 2) and value.dtype.kind in "biuf" and value.dtype.itemsize <= 8)
        or (value.ndim == 1 and (value.dtype == object or (value.dtype.kind == "U" and value.dtype.itemsize <= LONGEST)))
    ):
        return {"array": [value.dtype.str, to_json(value.tolist(), what)]}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name  # a dtype parameter
    for tag, kind in LOSS_TAGS.items():
        if type(value) is kind:
            return {tag: [to_json(number, what) for number in dataclasses.astuple(value)]}
    from partwise.solvers import CCCP, SOLVERS, Solver  # takes longer to import than a model to load, and few hold one

    if isinstance(value, CCCP):
        more = [] if value.targets_at == CCCP.targets_at else [value.targets_at]  # left out where older readers need no telling
        return {"cccp": [to_json(value.solver, what), to_json(value.epochs, what), *more]}
    if isinstance(value, Solver) and SOLVERS.get(value.name) is type(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"solver": [value.name, to_json(fields, what)]}
    raise TypeError(
        f"{what} holds {value!r} of type {type(value).__name__}, which cannot be kept in a model file. What can: strings, "
        "numbers, bools, None, tuples of these, and numpy numbers and strings."
    )


def from_json(value: Any) -> Any:
    """The value that `to_json` wrote."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError(f"unknown value {str(value)[:80]}")
    ((tag, content),) = value.items()
    if tag == "float" and content in ("inf", "-inf", "nan"):
        return float(content)
    if tag in ("tuple", "set", "frozenset"):
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[tag](from_json(item) for item in content)
    if tag == "dict":
        return {from_json(key): from_json(item) for key, item in content}
    if tag == "numpy":
        return np.array([from_json(content[1])], _dtype(content[0], "biufU"))[0]
    if tag == "array":
        items = from_json(content[1])
        dtype = _dtype(content[0], "biufUO")
        if dtype.kind == "U" and any(not isinstance(item, str) or 4 * len(item) > LONGEST for item in items):
            raise ValueError("an array of strings holds something else")
        if dtype.kind != "O":
            return np.array(items, dtype)
        array = np.empty(len(items), object)
        for k, item in enumerate(items):
            array[k] = item
        return array
    if tag in LOSS_TAGS:
        return LOSS_TAGS[tag](*(from_json(item) for item in content))
    from partwise.solvers import CCCP, SOLVERS

    if tag == "cccp" and len(content) in (2, 3):
        return CCCP(*(from_json(item) for item in content))
    if tag == "solver" and content[0] in SOLVERS:
        return SOLVERS[content[0]](**from_json(content[1]))
    raise ValueError(f"unknown value {str(value)[:80]}")


def _dtype(name: Any, kinds: str) -> np.dtype:
    dtype = dtype_called(name)
    if dtype.kind not in kinds:
        raise ValueError(f"unknown type {name!r}")
    return np.dtype("U") if dtype.kind == "U" else dtype  # a string type could claim any length per item: let the items decide


# ---------------------------------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------------------------------


def save(estimator: Any, path: Any, precision: str | None = None, least: float = 0.0) -> int:
    """Write a fitted estimator to `path`; returns how many weights were cut.

    Parameters
    ----------
    estimator : fitted estimator
    path : path
    precision : {"float16", "int8"}, optional
        Round the weights, for a smaller file.
    least : float
        Weights whose absolute value is less become zero.
    """
    if precision is not None and precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(map(repr, PRECISIONS))}, or None. Got {precision!r} instead.")
    name = type(estimator).__name__
    if name not in BY_ESTIMATOR or not isinstance(estimator, BY_ESTIMATOR[name].core):
        raise ModelFileError(f"A {name} cannot be saved to a model file; what can: {', '.join(BY_ESTIMATOR)}.")
    model, arrays = estimator._to_file()
    model = model if estimator.training_ is None else {**model, "training": estimator.training_}
    parameters = {key: value for key, value in estimator.parameters().items() if key not in NOT_SAVED}
    if isinstance(parameters.get("random_state"), np.random.RandomState):
        parameters["random_state"] = None
    try:
        header = {
            "format": FORMAT,
            "partwise_version": __version__,
            "estimator": name,
            "parameters": {key: to_json(value, f"The {key!r} parameter") for key, value in parameters.items()},
            "model": {
                **{key: to_json(value, f"The model's {key}") for key, value in model.items()},
                "temperature": estimator.temperature_,
                "solver": estimator.solver_,
                "C": to_json(estimator.C_, "The model's C"),
            },
        }
        w = estimator._kept_weights
        if isinstance(w, np.ndarray) and not all_finite(w):
            raise TypeError("The weights are not all finite")
        kept = without_small(w, least) if least > 0.0 else w
        about, tensors = to_tensors(kept, estimator._label_rows(), precision)
    except TypeError as error:
        raise ModelFileError(f"{os.fspath(path)!r} was not written. {error}.") from None
    write_tensors(path, header | about | {"format_version": FORMAT_VERSION}, {**tensors, **arrays})
    return 0 if kept is w else n_not_zero(w) - n_not_zero(kept)


# ---------------------------------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------------------------------


def load(path: Any, plain: bool = False) -> Any:
    """Read the estimator that ``estimator.save(path)`` wrote; its predictions are bit for bit the same.

    Parameters
    ----------
    path : path
    plain : bool
        Without the face that scikit-learn wants to see: quicker to import.

    Raises
    ------
    ModelFileError
        If the file is not a partwise model, is damaged, or was written by a newer version; the message says which.

    Examples
    --------
    >>> import tempfile
    >>> from partwise import Classifier
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Classifier().fit([[0.0], [1.0]], ["a", "b"]).save(f"{folder}/model")
    ...     load(f"{folder}/model").classes_.tolist()
    ['a', 'b']
    """
    path = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"There is no model file {path!r}.")
    header, tensors = read_tensors(path, FORMAT, FORMAT_VERSION)
    try:
        return _rebuild(header, tensors, plain)
    except ModelFileError as error:
        raise ModelFileError(f"{path!r}: {error}") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
        raise ModelFileError(f"{path!r} is damaged or was altered: {type(error).__name__}: {error}") from None


def labels_in(header: dict[str, Any]) -> np.ndarray:
    """The labels of a model, if they can be labels."""
    labels = _need(header, "labels", np.ndarray)
    if labels.ndim != 1 or not len(labels) or len(set(labels.tolist())) != len(labels):
        raise ValueError("the labels are not a list of distinct values")
    return labels


def count_in(header: dict[str, Any], key: str = "n_features") -> int:
    """A number of features, say."""
    n = _need(header, key, int)
    if n < 0:
        raise ValueError(f"{key} is {n}")
    return n


def _need(header: dict[str, Any], key: str, kind: type) -> Any:
    """An entry of the header, of the type it must have."""
    value = header.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{key!r} must be of type {kind.__name__}, got {type(value).__name__}")
    return value


def _rebuild(header: dict[str, Any], tensors: dict[str, np.ndarray], plain: bool) -> Any:
    name = header.get("estimator")
    if name not in BY_ESTIMATOR:
        raise ModelFileError(
            f"it holds a {name!r}, which partwise {__version__} does not know. Upgrade with: pip install --upgrade partwise"
        )
    task = BY_ESTIMATOR[name]
    kind = task.core if plain else task.public
    parameters = {key: from_json(value) for key, value in _need(header, "parameters", dict).items()}
    unknown = sorted(set(parameters) - set(kind.parameter_names()))
    if unknown:
        raise ModelFileError(
            f"it was written by partwise {header.get('partwise_version')} with the parameter {unknown[0]!r}, which partwise "
            f"{__version__} does not know. Upgrade with: pip install --upgrade partwise"
        )
    estimator = kind(**parameters)
    loss = estimator._check_parameters()
    model = {key: from_json(value) for key, value in _need(header, "model", dict).items()}
    weights, others = from_tensors(header, tensors)
    estimator._keep_weights(weights)
    estimator.training_ = None if model.get("training") is None else _need(model, "training", dict)
    expected = estimator._from_file(model, others, _need)
    if expected != weights.size:
        raise ValueError(f"there are {weights.size} weights where the model needs {expected}")
    if not isinstance(weights, np.ndarray) and estimator._label_rows() != (len(weights.starts) - 1, weights.width):
        raise ValueError("the lists of weights are not those of the model's features")
    temperature = model.get("temperature")
    if temperature is None:
        if loss.is_smooth:
            raise ValueError("the temperature is missing")
    elif not (isinstance(temperature, float) and 0 < temperature < math.inf):
        raise ValueError(f"the temperature is {temperature!r}")
    estimator.temperature_ = temperature
    estimator.solver_ = _need(model, "solver", str)
    estimator.C_ = model.get("C", estimator.C)  # older files have it among the parameters alone
    if not (isinstance(estimator.C_, int | float) and 0 < estimator.C_ < math.inf):
        raise ValueError(f"C is {estimator.C_!r}")
    return estimator
