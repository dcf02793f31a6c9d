"""Where corpora lie on disk: none of them comes with partwise."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder(name: str = "") -> Path:
    """The folder of corpora named by the environment variable PARTWISE_DATA, or the part `name` of it.

    Parameters
    ----------
    name : str
        A part of it, a corpus; the folder itself by default.

    Raises
    ------
    FileNotFoundError
        If the variable is not set, or what it names does not exist.

    Examples
    --------
    >>> folder = data_folder("conll2000")  # doctest: +SKIP
    """
    named = os.environ.get("PARTWISE_DATA")
    if not named:
        raise FileNotFoundError(
            "The corpora are found through the environment variable PARTWISE_DATA, which is not set. "
            "Set it to the folder that holds conll2000/, news20/ and multiclass/."
        )
    folder = Path(named) / name
    if not folder.exists():
        raise FileNotFoundError(f"PARTWISE_DATA is {named!r}, but there is no {folder}.")
    return folder
