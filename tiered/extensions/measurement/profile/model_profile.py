"""A profile: the time of each node, operator and layer of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from tiered.extensions.measurement.profile.executed import ExecutedPlace
from tiered.extensions.measurement.profile.kernel_events import Shape
from tiered.extensions.measurement.profile.layers import depth_for, text_of
from tiered.runtime.opening import Opening

_OUTSIDE: Final = 0.1
"""The share of the time outside of nodes from which it is reported."""


@dataclass(frozen=True)
class Machine:
    """What the machine does at most, measured with float32 on the same provider and threads.

    Attributes:
        multiply_adds: of a large matrix product, in each second.
        nbytes: that an elementwise operator reads and writes in memory, in each second.
    """

    multiply_adds: float
    nbytes: float

    def least(self, multiply_adds: int, nbytes: int) -> float:
        """Return the seconds that this work takes at least, if its data is in memory."""
        return max(multiply_adds / self.multiply_adds, nbytes / self.nbytes)


@dataclass(frozen=True)
class NodeTime:
    """One node that was executed.

    Attributes:
        name, op_type, provider: of the node.
        place: where it is from.
        seconds: of one run of the model, without the nodes of its bodies; the median.
        calls: how often it ran in a run.
        inputs, outputs: types and sizes of its tensors.
        nbytes: what it reads and writes in a run of the model.
        multiply_adds: in a run of the model; 0 for operators without sums of products.
        least: the seconds that the machine takes at least, None if it was not measured.
    """

    name: str
    op_type: str
    provider: str
    place: ExecutedPlace
    seconds: float
    calls: int
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    nbytes: int
    multiply_adds: int
    least: float | None = None

    @property
    def shapes(self) -> str:
        """The tensors as text."""
        read, made = (", ".join(map(str, each)) for each in (self.inputs, self.outputs))
        return f"{read} -> {made}"


@dataclass(frozen=True)
class ProfilePart:
    """Nodes that have something in common.

    Attributes:
        name: the operator or the layer.
        count: how many nodes.
        seconds: of all of them.
        share: of the time of all nodes.
    """

    name: str
    count: int
    seconds: float
    share: float


@dataclass(frozen=True)
class Profile:
    """Where the time of a model goes.

    Attributes:
        name: of the model.
        nodes: in the order of their first execution.
        seconds: of a run as a whole, while it is profiled; the median.
        runs: how many were measured.
        opening: level, threads and provider of onnxruntime.
        inputs: what the model ran on, in words.
        machine: what the machine does at most, None if it was not measured.
        notes: what could not be had.
    """

    name: str
    nodes: tuple[NodeTime, ...]
    seconds: float
    runs: int
    opening: Opening
    inputs: tuple[str, ...] = ()
    machine: Machine | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def in_nodes(self) -> float:
        """The seconds of all nodes."""
        return sum(node.seconds for node in self.nodes)

    @cached_property
    def operators(self) -> tuple[ProfilePart, ...]:
        """The operators, the slowest first."""
        return self._parts(lambda node: node.op_type)

    @cached_property
    def inserted(self) -> tuple[ProfilePart, ...]:
        """The operators of nodes that onnxruntime inserted for its kernels."""
        nodes = [node for node in self.nodes if node.place.is_inserted]
        return self._parts(lambda node: node.op_type, nodes)

    @cached_property
    def depth(self) -> int:
        """The depth that makes a readable number of layers."""
        return depth_for(node.place.layer for node in self.nodes)

    def layers(self, depth: int | None = None) -> tuple[ProfilePart, ...]:
        """Return the layers, the slowest first.

        Args:
            depth: how many steps of their paths count; by default as many as make few layers.
        """
        steps = self.depth if depth is None else depth
        return self._parts(lambda node: text_of(node.place.layer[:steps]))

    def share(self, seconds: float) -> float:
        """Return the share of a time of that of all nodes."""
        return seconds / self.in_nodes if self.in_nodes else 0.0

    @cached_property
    def slowest(self) -> tuple[NodeTime, ...]:
        """The nodes, the slowest first."""
        return tuple(sorted(self.nodes, key=lambda node: -node.seconds))

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know."""
        return tuple(self._remarks())

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in JSON types."""
        return {
            "model": self.name,
            "seconds": self.seconds,
            "in_nodes": self.in_nodes,
            "runs": self.runs,
            "provider": self.opening.provider,
            "threads": self.opening.threads,
            "runtime_level": self.opening.level,
            "inputs": list(self.inputs),
            "machine": None
            if self.machine is None
            else {
                "multiply_adds_per_second": self.machine.multiply_adds,
                "bytes_per_second": self.machine.nbytes,
            },
            "operators": _records(self.operators),
            "layers": _records(self.layers()),
            "inserted": _records(self.inserted),
            "nodes": [_record(self, node) for node in self.nodes],
            "remarks": list(self.remarks),
        }

    def _parts(
        self, name_of: Callable[[NodeTime], str], nodes: Sequence[NodeTime] | None = None
    ) -> tuple[ProfilePart, ...]:
        grouped: dict[str, list[float]] = {}
        for node in self.nodes if nodes is None else nodes:
            grouped.setdefault(name_of(node), []).append(node.seconds)
        parts = (
            ProfilePart(name, len(times), sum(times), self.share(sum(times)))
            for name, times in grouped.items()
        )
        return tuple(sorted(parts, key=lambda part: (-part.seconds, part.name)))

    def _remarks(self) -> Iterator[str]:
        yield from self.notes
        if self.inserted:
            kinds = ", ".join(f"{part.count} {part.name}" for part in self.inserted)
            share = sum(part.share for part in self.inserted)
            yield f"onnxruntime inserted {kinds}: {share:.1%} of the time"
        outside = self.seconds - self.in_nodes
        if outside > _OUTSIDE * self.seconds:
            yield (
                f"{outside / self.seconds:.0%} of a run is outside of nodes: what onnxruntime does "
                "around each, and the profile itself"
            )
        if self.nodes and not any(node.place.layer for node in self.nodes):
            yield "the names of nodes have no layers, nor has their metadata"


def _records(parts: Sequence[ProfilePart]) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "nodes": each.count, "seconds": each.seconds, "share": each.share}
        for each in parts
    ]


def _record(profile: Profile, node: NodeTime) -> dict[str, Any]:
    return {
        "name": node.name,
        "op_type": node.op_type,
        "provider": node.provider,
        "layer": list(node.place.layer),
        "seconds": node.seconds,
        "share": profile.share(node.seconds),
        "calls": node.calls,
        "inputs": list(map(str, node.inputs)),
        "outputs": list(map(str, node.outputs)),
        "bytes": node.nbytes,
        "multiply_adds": node.multiply_adds,
        "least_seconds": node.least,
        "inserted": node.place.is_inserted,
        "tensors": list(node.place.outputs),
        "origins": list(node.place.origins),
    }
