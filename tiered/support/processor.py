"""The name of the processor; on Linux `platform` does not know it."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Final

_FACTS: Final = Path("/proc/cpuinfo")
_NAME: Final = "model name"


def processor_name() -> str:
    """Return the name of the processor as the system has it; "" if it has none."""
    try:
        lines = _FACTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []  # another system
    pairs = (line.partition(":") for line in lines)
    named = next((value.strip() for key, _, value in pairs if key.strip() == _NAME), "")
    return named or platform.processor()
