"""The events of onnxruntime's profile: the time of each kernel in each run.

A kernel of an operator with bodies spans those of its bodies: its own time is what they leave.
"""

from __future__ import annotations

import bisect
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tiered.support.amounts import counted
from tiered.support.errors import RuntimeFailure

_ENDING: Final = "_kernel_time"
_WITH_BODIES: Final = frozenset(
    {"BeamSearch", "GreedySearch", "If", "Loop", "Sampling", "Scan", "SequenceMap"}
)

Key = tuple[tuple[str, int], ...]
"""A node by its name and onnxruntime's number, after those of the nodes whose bodies it is in."""


class Shape(NamedTuple):
    """The type of a tensor that a kernel met: `float[1,64]`."""

    dtype: str
    dims: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"


class Kernel(NamedTuple):
    """What one node ran as.

    Attributes:
        name, op_type, provider: of the node.
        inputs, outputs: the tensors of its last run; absent inputs are left out.
        nbytes: what it reads and writes, with its constants.
        is_inner: whether it is in a body.
    """

    name: str
    op_type: str
    provider: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    nbytes: int
    is_inner: bool


@dataclass
class ProfiledRun:
    """One run: its seconds, and those of each node, without its bodies, with how often it ran."""

    seconds: float
    nodes: dict[Key, float] = field(default_factory=dict)
    calls: dict[Key, int] = field(default_factory=dict)

    def add(self, key: Key, seconds: float, calls: int = 0) -> None:
        """Add to the time of a node."""
        self.nodes[key] = self.nodes.get(key, 0.0) + seconds
        self.calls[key] = self.calls.get(key, 0) + calls


class Events(NamedTuple):
    """The runs of a profile, and what each node ran as."""

    runs: tuple[ProfiledRun, ...]
    kernels: Mapping[Key, Kernel]


def read_events(path: str | os.PathLike[str], skip: int = 0) -> Events:
    """Read a profile that onnxruntime wrote.

    Args:
        path: the file.
        skip: how many runs, the first ones, do not count.

    Raises:
        RuntimeFailure: it is no whole profile, or has no run.
    """
    try:
        with open(path, encoding="utf-8") as file:
            events = json.load(file)
    except (OSError, ValueError) as error:
        raise RuntimeFailure(f"onnxruntime wrote no whole profile: {error}") from error
    spans = sorted((each["ts"], each["dur"]) for each in events if each["name"] == "model_run")
    if len(spans) <= skip:
        raise RuntimeFailure(
            f"onnxruntime's profile has {counted(len(spans), 'run')}; expected {skip + 1}"
        )
    runs = [ProfiledRun(duration / 1e6) for _, duration in spans]
    starts = [start for start, _ in spans]
    kernels: dict[Key, Kernel] = {}
    for event, keys in _nested(events):
        place = bisect.bisect_right(starts, event["ts"]) - 1
        if place < skip:
            continue
        seconds = event["dur"] / 1e6
        runs[place].add(keys, seconds, 1)
        if keys[:-1]:
            runs[place].add(keys[:-1], -seconds)
        kernels[keys] = _kernel(event, is_inner=bool(keys[:-1]))
    return Events(tuple(runs[skip:]), kernels)


def _nested(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], Key]]:
    """Yield the events of nodes, each with its key."""
    nodes = [each for each in events if each["cat"] == "Node" and each["name"].endswith(_ENDING)]
    # Events are written when they end: of equal times, the later one is the outer one.
    numbered = sorted(enumerate(nodes), key=lambda pair: (pair[1]["ts"], -pair[1]["dur"], -pair[0]))
    around: list[tuple[int, Key]] = []
    for _, event in numbered:
        while around and event["ts"] >= around[-1][0]:
            around.pop()
        args = event["args"]
        own = (event["name"].removesuffix(_ENDING), int(args.get("node_index", 0)))
        key = (*(around[-1][1] if around else ()), own)
        yield event, key
        if args.get("op_name") in _WITH_BODIES:
            around.append((event["ts"] + event["dur"], key))


def _kernel(event: Mapping[str, Any], *, is_inner: bool) -> Kernel:
    args = event["args"]
    sizes = (args.get(f"{kind}_size", 0) for kind in ("activation", "parameter", "output"))
    return Kernel(
        event["name"].removesuffix(_ENDING),
        args.get("op_name", ""),
        args.get("provider", ""),
        _shapes(args.get("input_type_shape", ())),
        _shapes(args.get("output_type_shape", ())),
        sum(map(int, sizes)),
        is_inner,
    )


def _shapes(entries: Sequence[Mapping[str, Any]]) -> tuple[Shape, ...]:
    return tuple(
        Shape(dtype, tuple(map(int, dims))) for entry in entries for dtype, dims in entry.items()
    )
