"""What was recorded is kept, as long as no source is edited: recording that was ended goes on where it was."""

import numpy as np

from partwise.freezing import recorder
from partwise.freezing.recorder import Call, recorded

CALL = Call("partwise.kernels", "measure", np.ndarray, ())


def test_what_was_recorded_is_kept_until_a_source_is_edited(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(recorder, "record", lambda *unit: asked.append(unit) or [CALL])
    for _ in range(2):
        assert recorded("tag", True, 3, 16, tmp_path) == [CALL]
    assert asked == [("tag", True, 3, 16)]
    recorded("tag", False, 0, 1, tmp_path)
    assert len(asked) == 2 and len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(recorder, "state", lambda: "edited")
    recorded("tag", True, 3, 16, tmp_path)
    assert len(asked) == 3 and len(list(tmp_path.iterdir())) == 2  # the old one is gone


def test_the_state_is_that_of_all_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "PACKAGE", tmp_path)
    seen = set()
    for text in ("a = 1", "a = 2"):
        (tmp_path / "one.py").write_text(text)
        seen.add(recorder.state.__wrapped__())
    (tmp_path / "one.py").rename(tmp_path / "two.py")
    seen.add(recorder.state.__wrapped__())
    assert len(seen) == 3
