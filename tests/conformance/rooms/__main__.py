"""Random models through a room: `python -m tests.conformance.rooms legalize --minutes 30 --seed 0`.

Without a room all of them run, one model each in turn.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import cyclopts

from tests.conformance.judge import describe
from tests.conformance.rooms import lossy, same_outputs
from tests.conformance.rooms.gradients import gradient_fault
from tests.conformance.rooms.other_interfaces import batch_fault, interface, packing_fault, renamed
from tests.conformance.rooms.room import NotTried, Refused, Room, fault_in
from tiered.support.errors import UsageError, did_you_mean

_JUDGED: Final[Mapping[str, Room]] = {
    "convert_opset": same_outputs.convert_opset,
    "legalize": same_outputs.legalize,
    "targets": same_outputs.targets,
    "memory": same_outputs.memory,
    "layouts": same_outputs.layouts,
    "functions": same_outputs.functions,
    "int32": same_outputs.int32,
    "qonnx": same_outputs.qonnx,
    "rename": renamed,
    "interface": interface,
    "precision": lossy.precision,
    "quantization": lossy.quantization,
}
ROOMS: Final[Mapping[str, Callable[[int], str]]] = {
    **{name: partial(fault_in, room) for name, room in _JUDGED.items()},
    "batch": batch_fault,
    "packing": packing_fault,
    "gradients": gradient_fault,
}
"""Each returns what is wrong with the model of a number, "" if nothing."""


def fault(room: str, seed: int) -> str:
    """Return what is wrong with the model of a number in a room; a crash is wrong too.

    Raises:
        NotTried: the room says nothing about it.
        Refused: the room refuses the model with an error.
    """
    try:
        return ROOMS[room](seed)
    except (NotTried, Refused):
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the fault to report
        return describe(error)


def main(*rooms: str, minutes: float = 1.0, seed: int = 0) -> None:
    """Run random models through rooms, and print what is wrong.

    Args:
        rooms: their names; all of them by default.
        minutes: for how long.
        seed: the number of the first model.
    """
    for name in rooms:
        if name not in ROOMS:
            raise UsageError(f"there is no room {name!r}{did_you_mean(name, ROOMS)}: {[*ROOMS]}")
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    until, counts, failed = time.monotonic() + 60 * minutes, Counter[str](), 0
    while time.monotonic() < until:
        for room in rooms or ROOMS:
            try:
                found = fault(room, seed)
            except (NotTried, Refused) as reason:
                counts[f"{room} {'refused' if isinstance(reason, Refused) else 'not tried'}"] += 1
                continue
            counts[room] += 1
            if found:
                failed += 1
                print(f"{room}, seed {seed}: {found}"[:600], flush=True)
        seed += 1
    print(f"up to seed {seed}: {dict(sorted(counts.items()))}, {failed} faults")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    cyclopts.run(main)
