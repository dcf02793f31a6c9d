"""What all tests share."""

import builtins
import contextlib
import os
import sys
import time
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path

import pytest
from hypothesis import settings

# A run on a server draws the same examples every time; at home each run draws new ones.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

# Compiled code of a test run stays inside the checkout; set before partwise is imported.
os.environ.setdefault("PARTWISE_CACHE_DIR", str(Path(__file__).parent.parent / "build" / "cache"))


class SharedModules(FileFinder):
    """What tests share lies in their folder; folders in it are no packages: ``import torch`` finds torch, or nothing."""

    def find_spec(self, fullname, target=None):
        found = super().find_spec(fullname, target)
        return found if found is not None and found.loader is not None else None


HERE = str(Path(__file__).parent)
sys.path_importer_cache[HERE] = SharedModules(HERE, (SourceFileLoader, SOURCE_SUFFIXES))

WHY_NO_DATA = "PARTWISE_DATA is not set to a folder of corpora (conll2000/, news20/, multiclass/)"


def has_data() -> bool:
    return bool(os.environ.get("PARTWISE_DATA")) and Path(os.environ["PARTWISE_DATA"]).is_dir()


def pytest_collection_modifyitems(items):
    if has_data():
        return
    for item in items:
        if "data" in item.keywords:
            item.add_marker(pytest.mark.skip(reason=WHY_NO_DATA))


def pytest_addoption(parser):
    parser.addoption("--compiling", metavar="FILE", help="write which loops were compiled, in which test, and how long it took")


class Compiling:
    """Notes what is compiled, a line each: seconds, loop, structure, test."""

    def __init__(self, path):
        from partwise.engine.numba_internals import FileCache

        self.path, self.test, self.begun = path, "", {}
        load, save = FileCache.load_overload, FileCache.save_overload

        def loading(cache, *arguments):
            found = load(cache, *arguments)
            if found is None:
                self.begun[cache] = time.process_time()
            return found

        def saving(cache, *arguments):
            save(cache, *arguments)
            with open(self.path, "a") as file:
                took = time.process_time() - self.begun.pop(cache, time.process_time())
                file.write(f"{took:.2f}\t{cache.files.label}\t{cache.files.structure}\t{self.test}\n")

        FileCache.load_overload, FileCache.save_overload = loading, saving

    def pytest_runtest_logstart(self, nodeid):
        self.test = nodeid


def pytest_configure(config):
    if config.getoption("--compiling"):
        config.pluginmanager.register(Compiling(config.getoption("--compiling")))


@pytest.fixture(scope="module", autouse=True)
def _interpreted_module(request):
    """Modules marked so run their loops in the interpreter; with PARTWISE_COMPILE_ALL, as in `make test-all`, they do not."""
    with as_marked(request.node):
        yield


@pytest.fixture(autouse=True)
def _interpreted_test(request):
    """So do single tests."""
    with as_marked(request.node):
        yield


def as_marked(node):
    """The interpreter, if the module or test is marked so."""
    if node.get_closest_marker("interpreted") is None or os.environ.get("PARTWISE_COMPILE_ALL"):
        return contextlib.nullcontext()
    from partwise import interpret

    return interpret()


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
