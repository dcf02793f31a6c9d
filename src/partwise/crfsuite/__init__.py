"""The interface of sklearn-crfsuite over `SequenceLabeler`, for code that was written for it.

    import partwise.crfsuite as sklearn_crfsuite
    from partwise.crfsuite import metrics, scorers

    crf = sklearn_crfsuite.CRF(algorithm="lbfgs", c2=0.1, max_iterations=100, all_possible_transitions=True)

`pycrfsuite` is the interface of python-crfsuite. Nothing is computed here: parameters are translated (`settings`), the rest is
handed on. What differs is told where it differs, and all together in docs/coming-from.md. CRFsuite itself is not needed.
"""

from partwise.crfsuite import metrics, pycrfsuite, scorers, utils
from partwise.crfsuite.estimator import CRF

__all__ = ["CRF", "metrics", "pycrfsuite", "scorers", "utils"]
