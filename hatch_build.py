"""Wheels for a platform carry machine code: ``PARTWISE_FROZEN_CODE`` names the folder that ``python -m partwise.freezing`` made.

Without it the wheel is pure Python, as is an editable install.
"""

import json
import os
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MachineCodeHook(BuildHookInterface):
    """Puts libraries and their index into ``partwise/frozen_code``."""

    def initialize(self, version, build_data):
        """Called before a wheel is built."""
        folder = os.environ.get("PARTWISE_FROZEN_CODE")
        if not folder or version == "editable":
            return
        index = Path(folder) / "index.json"
        if not index.exists():
            raise FileNotFoundError(f"{folder} holds no machine code. Run: python -m partwise.freezing {folder}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{json.loads(index.read_text())['platform']}"
        for file in sorted(Path(folder).iterdir()):
            build_data["force_include"][str(file)] = f"partwise/frozen_code/{file.name}"
