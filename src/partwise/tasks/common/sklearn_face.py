"""The scikit-learn face: what makes an estimator of ours one of scikit-learn's, put on when it is first asked for.

Estimators are written without scikit-learn, which takes longer to import than training a small model: the command line uses
them as they are. ``partwise.X`` is the same class with `BaseEstimator` and the mixins it names below it: `get_params`, `clone`,
`repr`, metadata routing, pickling and scikit-learn's own checks work.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def with_face(core: type) -> type:
    """`core` as a class of scikit-learn: one class for each, so that pickles find it under ``partwise``."""
    import sklearn.base

    mixins = tuple(getattr(sklearn.base, name) for name in core.sklearn_mixins)  # type: ignore[attr-defined]
    body: dict[str, Any] = {"__doc__": core.__doc__, "__module__": "partwise", "__qualname__": core.__name__}
    return type(core.__name__, (core, *mixins, sklearn.base.BaseEstimator), body)  # what a core says goes
