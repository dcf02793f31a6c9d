"""Arrays on disk that are mapped."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from partwise.files.packed_arrays import HEADER, PackedError, map_array, npy_header


def sparse_file(path, dtype, n):
    """An array of n zeros that takes no room on disk."""
    dtype = np.dtype(dtype)
    with open(path, "wb") as file:
        file.write(npy_header(dtype, (n,)))
        file.truncate(HEADER + n * dtype.itemsize)


@pytest.mark.skipif(sys.platform != "linux", reason="files without blocks on disk")
def test_an_array_larger_than_all_memory_is_mapped(tmp_path):
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    n = 2 * memory // 8
    sparse_file(tmp_path / "large.npy", np.float64, n)
    found = map_array(os.fspath(tmp_path / "large.npy"), np.dtype(np.float64), (n,))
    assert found.shape == (n,) and found[0] == found[-1] == 0.0


def test_what_is_written_to_a_mapped_array_stays_in_this_process(tmp_path):
    sparse_file(tmp_path / "some.npy", np.int32, 2000)
    some = map_array(os.fspath(tmp_path / "some.npy"), np.dtype(np.int32), (2000,))
    some[:] = 7
    assert not np.load(tmp_path / "some.npy").any()


def test_another_size_than_the_manifest_says_is_refused(tmp_path):
    sparse_file(tmp_path / "some.npy", np.int32, 10)
    with pytest.raises(PackedError, match="has 168 bytes where its manifest has 172"):
        map_array(os.fspath(tmp_path / "some.npy"), np.dtype(np.int32), (11,))
