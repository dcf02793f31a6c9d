"""What all tests share."""

import builtins
import os
from pathlib import Path

import pytest
from hypothesis import settings

# A run on a server draws the same examples every time; at home each run draws new ones.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

# Compiled code of a test run stays inside the checkout; set before partwise is imported.
os.environ.setdefault("PARTWISE_CACHE_DIR", str(Path(__file__).parent.parent / "build" / "cache"))

WHY_NO_DATA = "PARTWISE_DATA is not set to a folder of corpora (conll2000/, news20/, multiclass/)"


def has_data() -> bool:
    return bool(os.environ.get("PARTWISE_DATA")) and Path(os.environ["PARTWISE_DATA"]).is_dir()


def pytest_collection_modifyitems(items):
    if has_data():
        return
    for item in items:
        if "data" in item.keywords:
            item.add_marker(pytest.mark.skip(reason=WHY_NO_DATA))


def without_matplotlib(monkeypatch) -> None:
    """From here to the end of the test, matplotlib is not installed."""
    real = builtins.__import__

    def refuse(name, *arguments, **keywords):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.fixture
def corpora() -> Path:
    """The folder of corpora; skips the test, saying why, where there is none."""
    if not has_data():
        pytest.skip(WHY_NO_DATA)
    return Path(os.environ["PARTWISE_DATA"])
