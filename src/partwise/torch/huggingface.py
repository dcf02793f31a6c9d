"""A CRF on the token classifiers of Hugging Face's transformers, which their Trainer trains like any other model.

    >>> from transformers import AutoModelForTokenClassification
    >>> from partwise.torch.huggingface import with_crf
    >>> model = with_crf(AutoModelForTokenClassification.from_config(config), loss="hinge", constraints="iob2")

The model stays one of theirs: ``save_pretrained`` keeps the transitions beside the rest, and what the layer was made with in the
config. ``with_crf(type)`` is the class to read such a model with:
``with_crf(BertForTokenClassification).from_pretrained(folder)``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import TokenClassifierOutput

from partwise.torch.crf import CRF

NOT_LABELLED = -100  #: label of pieces that are no tokens of their own: special ones, padding, all but the first of a word
SETTINGS = "partwise_crf"  #: what the config calls the options of the layer


@dataclass
class StructuredOutput(TokenClassifierOutput):
    """What a model with a CRF answers.

    Attributes
    ----------
    loss : Tensor, optional
        Of the layer, for each labelled token on average.
    logits : Tensor (B, T, labels)
        Emissions: what the network says of each piece alone.
    best : Tensor (B, T) int64, optional
        The best labelling, -100 where there is no token; not while training.
    """

    best: Tensor | None = None


def with_crf(
    model: Any, *, loss: str = "crf", constraints: str | Iterable[tuple[int | None, int | None]] = (), learning: bool = True
) -> Any:
    """A token classifier whose labels are those of a `CRF` over its logits.

    Parameters
    ----------
    model : a ``...ForTokenClassification``, or its class
        A model is changed, and returned; of a class, a subclass is returned, whose configs say what the layer is like.
    loss : str
        "crf", "hinge", "softmax_margin", "ramp" ...
    constraints : str or list of pairs
        "iob2" and so on, for the names in ``config.id2label``; or pairs of label numbers (see `CRF`).
    learning : bool
        Whether transitions are learnt; else they stay zero and only constraints matter.

    Notes
    -----
    `forward` takes one argument more, ``token_mask`` (B, T): the pieces that are tokens, such as the first of each word. Without
    it they are those with a label other than -100, and where there are no labels, all that ``attention_mask`` shows. Give it in
    prediction, if a word has several pieces. The layer sees tokens only, one next to the other.

    In evaluation, ``best`` comes behind ``logits``: a ``compute_metrics`` of the Trainer gets both as ``predictions``.
    """
    if isinstance(model, type):
        return _class_with_crf(model)  # type: ignore[arg-type]
    if not isinstance(model, PreTrainedModel):
        raise ValueError(f"Expected a model of transformers, or a class of such. Got {type(model).__name__}.")
    pairs = constraints if isinstance(constraints, str) else [list(pair) for pair in constraints]
    setattr(model.config, SETTINGS, {"loss": loss, "constraints": pairs, "learning": learning})
    model.__class__ = _class_with_crf(type(model))  # type: ignore[arg-type]
    model._add_layer()
    model.crf.to(next(model.parameters()).device)
    return model


@functools.cache
def _class_with_crf(base: type) -> type:
    if not issubclass(base, PreTrainedModel):
        raise ValueError(f"Expected a class of models of transformers. Got {base.__name__}.")
    body = {"__module__": __name__, "__doc__": f"{base.__name__} with a CRF over its logits.", "forward": _forward_like(base)}
    return type(f"{base.__name__}WithCRF", (_WithCRF, base), body)


class _WithCRF:
    """What is put before a class of transformers."""

    config: Any
    crf: CRF

    def __init__(self, config: Any, *arguments: Any, **options: Any):
        super().__init__(config, *arguments, **options)  # type: ignore[call-arg]
        self._add_layer()

    def _add_layer(self) -> None:
        given = {"loss": "crf", "constraints": (), "learning": True, **(getattr(self.config, SETTINGS, None) or {})}
        n, constraints = self.config.num_labels, given["constraints"]
        names = [self.config.id2label[k] for k in range(n)]
        constraints = constraints if isinstance(constraints, str) else [tuple(pair) for pair in constraints]
        self.crf = CRF(n, batch_first=True, loss=given["loss"], constraints=constraints, labels=names)
        if not given["learning"]:
            for parameter in self.crf.parameters():
                torch.nn.init.zeros_(parameter)
                parameter.requires_grad_(False)

    def _init_weights(self, module: Any) -> None:
        """What the weights lack that are read: a layer, if they are of a model without; what is forbidden, in any case."""
        if isinstance(module, CRF):
            module.reset_parameters()
            module.forbid(module.constraints)
        else:
            super()._init_weights(module)  # type: ignore[misc]


def _forward_like(base: Any) -> Any:
    """`forward` of a class with a CRF: with the parameters of the class below, which the Trainer looks at."""

    def forward(
        self: Any, *arguments: Any, labels: Tensor | None = None, token_mask: Tensor | None = None, **options: Any
    ) -> Any:
        in_all, as_tuple = options.pop("num_items_in_batch", None), options.pop("return_dict", True) is False
        found = base.forward(self, *arguments, **options, return_dict=True)
        logits, mask = found.logits, token_mask
        if mask is None:
            mask = labels != NOT_LABELLED if labels is not None else options.get("attention_mask")
        mask = torch.ones_like(logits[..., 0], dtype=torch.bool) if mask is None else mask.bool()
        rows = mask.any(1).nonzero()[:, 0]
        places = (~mask[rows]).long().argsort(dim=1, stable=True)[:, : int(mask.sum(1).max()) if len(mask) else 0]
        inside = mask[rows].gather(1, places)
        emissions = logits[rows].gather(1, places[..., None].expand(-1, -1, logits.shape[-1]))
        loss, best = None, None
        if labels is not None:
            tags = labels[rows].gather(1, places)
            wrong = (tags == NOT_LABELLED) & inside
            if token_mask is not None and bool(wrong.any()):
                raise ValueError("Some pieces that 'token_mask' shows have no label.")
            total = -self.crf(emissions, tags.clamp(min=0), inside, "sum") if len(rows) else logits.sum() * 0.0
            loss = total / (mask.sum().clamp(min=1) if in_all is None else in_all)
        if not self.training:
            best = torch.full(mask.shape, NOT_LABELLED, device=logits.device)
            if len(rows):
                answer = self.crf.distribution(emissions, inside).argmax
                which = rows[:, None].expand_as(places)[inside]
                best[which, places[inside]] = answer[inside]
        output = StructuredOutput(
            loss=loss, logits=logits, best=best, hidden_states=found.hidden_states, attentions=found.attentions
        )
        # the order of a tuple is that of the dict: put the answer next to the logits
        return (
            tuple(value for value in (loss, logits, best, found.hidden_states, found.attentions) if value is not None)
            if as_tuple
            else output
        )

    own = inspect.signature(base.forward)
    more = inspect.Parameter("token_mask", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters = list(own.parameters.values())
    at = next((k for k, one in enumerate(parameters) if one.kind is one.VAR_KEYWORD), len(parameters))
    forward.__signature__ = own.replace(parameters=[*parameters[:at], more, *parameters[at:]])  # type: ignore[attr-defined]
    return forward
