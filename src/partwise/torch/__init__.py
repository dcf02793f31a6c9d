"""Every structure and every loss as a layer of a network: `pip install 'partwise[torch]'`.

    >>> from partwise.torch import CRF, LinearChain, structured_loss

A distribution (`LinearChain`, `SemiMarkov`, `DependencyTree`, `Constituency`, `Alignment`) is made of the scores that a network
gives, and has ``log_partition``, ``marginals``, ``argmax``, ``topk``, ``entropy``, ``log_prob``, ``sample``, ``cross_entropy``
and ``kl``; of an `Assignment` there is only what needs no sums. `structured_loss` compares it with targets, by every loss of the
library. `CRF` is the layer that most people want; `partwise.torch.huggingface` puts it on transformers.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("partwise.torch needs PyTorch: pip install 'partwise[torch]'") from error

from partwise.torch.alignment import Alignment
from partwise.torch.assignment import Assignment
from partwise.torch.constituency import Constituency
from partwise.torch.crf import CRF
from partwise.torch.dependency_tree import DependencyTree
from partwise.torch.distribution import StructuredDistribution
from partwise.torch.linear_chain import LinearChain
from partwise.torch.losses import structured_loss
from partwise.torch.operators import reference_only
from partwise.torch.semi_markov import SemiMarkov

__all__ = [
    "CRF",
    "Alignment",
    "Assignment",
    "Constituency",
    "DependencyTree",
    "LinearChain",
    "SemiMarkov",
    "StructuredDistribution",
    "reference_only",
    "structured_loss",
]
