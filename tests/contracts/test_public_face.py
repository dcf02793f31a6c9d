"""What ``import partwise`` gives, and what it costs."""

import subprocess
import sys
from pathlib import Path

import partwise


def test_import_loads_nothing_heavy():
    code = "import sys, partwise; print([m for m in ('numba', 'sklearn', 'scipy', 'numpy', 'safetensors') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_command_line_says_what_it_can_do_at_once():
    code = "import sys, partwise.cli.app; print([m for m in ('numba', 'sklearn', 'scipy', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_every_name_is_there():
    for name in partwise.__all__:
        assert getattr(partwise, name) is not None
    assert set(partwise.__all__) <= set(dir(partwise))
    assert not hasattr(partwise, "nothing_of_the_kind")


def test_the_table_of_options_is_up_to_date():
    from partwise.cli.reference import page

    page_on_disk = Path(__file__).parent.parent.parent / "docs" / "command-line.md"
    assert page_on_disk.read_text() == page(), "run: python -m partwise.cli.reference > docs/command-line.md"
