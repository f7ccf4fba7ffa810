"""The machine and the runtime, as far as measurements depend on them."""

from __future__ import annotations

import os
import platform
from typing import Any

from tiered import __version__
from tiered.extensions.measurement.bench import How


def machine_text(how: How, objective: str, command: str | None) -> str:
    """Return what measurements depend on beside the model, in one line.

    Args:
        how: provider, threads, level and clock.
        objective: what is measured.
        command: that of the user, None for onnxruntime.
    """
    import onnxruntime

    cores, system = f"{os.cpu_count()} cores", platform.system()
    parts: list[Any] = [f"tiered {__version__}", _processor(), cores, system, objective]
    if command is not None:
        return ", ".join((*parts, f"measured by {command}"))
    opening = how.opening()
    parts += [
        f"onnxruntime {onnxruntime.__version__}", opening.provider, f"threads {opening.threads}",
        f"optimisations {opening.level}", f"{how.clock} time",
    ]  # fmt: skip
    return ", ".join(parts)


def _processor() -> str:
    """Return the name of the processor; on Linux `platform` does not know it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() == "model name":
                    return value.strip()
    except OSError:
        pass  # another system
    return platform.processor() or platform.machine()
