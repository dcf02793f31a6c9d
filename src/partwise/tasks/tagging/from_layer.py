"""A tagger with the weights of a CRF layer of torch: what a network has learnt goes on without torch.

The layer is asked for its parameters by name, as `partwise.torch.CRF` and pytorch-crf call them; torch is not imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.tasks.common.label_arrays import shown
from partwise.text.given_encoders import MatrixEncoder


def labeler_from_layer(cls: Any, layer: Any, classes: Any, linear: Any, parameters: dict[str, Any]) -> Any:
    """See `SequenceLabeler.from_torch`."""
    try:
        moves, start, stop = (_array(getattr(layer, name)) for name in ("transitions", "start_transitions", "end_transitions"))
    except AttributeError as error:
        raise ValueError(
            f"Expected a CRF layer with 'transitions', 'start_transitions' and 'end_transitions'. Got {type(layer).__name__}."
        ) from error
    L = len(start)
    classes = np.arange(L) if classes is None else np.asarray(classes)
    if classes.shape != (L,) or len(set(classes.tolist())) != L:
        raise ValueError(f"The layer has {L} labels: 'classes' must be as many different ones. Got {shown(classes)}.")
    table, bias = np.eye(L), np.zeros(L)
    if linear is not None:
        table = _array(linear.weight).T
        if table.shape[1] != L:
            raise ValueError(f"'linear' must have {L} outputs, one for each label. Got {table.shape[1]}.")
        bias = bias if linear.bias is None else _array(linear.bias)
    order = np.argsort(classes)
    names = classes[order].tolist()
    # a bias is got once for each token, and so is a transition into its label
    rows = [table[:, order], (moves + bias)[np.ix_(order, order)], (start + bias)[None, order], stop[None, order]]
    weights = np.concatenate(rows)
    if not np.isfinite(weights).all():
        raise ValueError("The weights of the layer are not all finite.")
    wall = getattr(layer, "wall", None)
    if wall is not None and "constraints" not in parameters:
        parameters = {**parameters, "constraints": _forbidden(_array(wall), classes)}
    model = cls(loss=parameters.pop("loss", getattr(layer, "loss", "crf")), **parameters)
    loss = model._check_parameters()
    if model.order != 1 or model.hidden != 1:
        raise ValueError("A layer has weights of single transitions: order=1 and hidden=1.")
    model._keep_nothing(weights.size, loss)
    model.weights_ = np.ascontiguousarray(weights, model._dtype).ravel()
    model._learned(MatrixEncoder(model._dtype, len(table), who=model._who), np.array(names, classes.dtype), None)
    return model


def _array(tensor: Any) -> np.ndarray:
    """A tensor of any device and type."""
    return tensor.detach().cpu().double().numpy()


def _forbidden(wall: np.ndarray, classes: np.ndarray) -> list[tuple[Any, Any]]:
    """The transitions where the wall is -inf, as pairs of labels; its last row and column are the beginning and the end."""
    ends = [*classes.tolist(), None]
    return [(ends[a], ends[b]) for a, b in np.argwhere(wall == -np.inf).tolist()]
