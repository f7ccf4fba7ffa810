"""Coverage: the nodes of a model that a target takes, and why it does not take the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tiered.support.amounts import counted
from tiered.targets.calls import judged_in_calls
from tiered.targets.operator_rule import Bounds, OperatorRule
from tiered.targets.shared_rules import Refusal

if TYPE_CHECKING:
    from tiered.graph import Graph, Model, Node
    from tiered.graph.core.graph import Function


class CoverageTarget(Protocol):
    """The parts of `Backend` that coverage and its readers need."""

    @property
    def name(self) -> str: ...
    @property
    def doc(self) -> str: ...
    @property
    def shapes(self) -> str: ...
    @property
    def opset(self) -> Bounds: ...
    @property
    def ir_version(self) -> Bounds: ...
    def rules(self, op_type: str, domain: str = "") -> Sequence[OperatorRule]: ...
    def takes(self, node: Node) -> bool: ...
    def refusals(self, node: Node) -> tuple[Refusal, ...]: ...


@dataclass(frozen=True, slots=True)
class Gap:
    """Nodes of one operator that a target does not take, all for the same reasons."""

    operator: str
    reasons: tuple[str, ...]
    nodes: tuple[Node, ...]

    def __str__(self) -> str:
        return f"{self.operator}: {'; '.join(self.reasons)}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """The result of comparing a model with a target.

    Attributes:
        backend: the target.
        operators: the number of nodes of each operator.
        gaps: the refused nodes by operator and reasons, largest group first.
        model: refusals of the model itself: opset, IR version.
    """

    backend: CoverageTarget
    operators: Counter[str]
    gaps: tuple[Gap, ...]
    model: tuple[Refusal, ...]

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.operators.total()

    @property
    def refused(self) -> Counter[str]:
        """The number of refused nodes of each operator."""
        counts: Counter[str] = Counter()
        for gap in self.gaps:
            counts[gap.operator] += len(gap.nodes)
        return counts

    @property
    def is_met(self) -> bool:
        """Whether the target takes the whole model."""
        return not self.gaps and not self.model

    def record(self) -> dict[str, Any]:
        """Return what the target takes, and why not the rest, as plain data."""
        return {
            "nodes": self.nodes,
            "taken": self.nodes - self.refused.total(),
            "model": [str(refusal) for refusal in self.model],
            "gaps": [
                {
                    "operator": gap.operator,
                    "reasons": list(gap.reasons),
                    "count": len(gap.nodes),
                    "nodes": [node.label for node in gap.nodes],
                }
                for gap in self.gaps
            ],
        }

    def __str__(self) -> str:
        taken = self.nodes - self.refused.total()
        return f"{self.backend} takes {taken:,} of {counted(self.nodes, 'node')}"


def coverage_of(model: Model, backend: CoverageTarget) -> Coverage:
    """Check every node of a model against the table of a target.

    A call of a local function counts as one node if the table lists it; otherwise the nodes of the
    function count, once, and must be taken with the types of every call. Constants do not count:
    they hold data.
    """
    operators: Counter[str] = Counter()
    gaps: dict[tuple[str, tuple[str, ...]], list[Node]] = {}
    graphs = list(checked_graphs(model, backend))
    in_calls = judged_in_calls(
        model,
        [graph for graph in graphs if not graph.root.is_function],
        lambda node: called_function(node, backend),
        backend.refusals,
    )
    for graph in graphs:
        for node in graph.nodes:
            if called_function(node, backend) is not None or node.is_op("Constant"):
                continue
            name = node.operator
            operators[name] += 1
            refused = in_calls.get(node)
            if refused is None:
                refused = backend.refusals(node)
            if refused:
                gaps.setdefault((name, tuple(map(str, refused))), []).append(node)
    found = [Gap(name, reasons, tuple(nodes)) for (name, reasons), nodes in gaps.items()]
    found.sort(key=lambda gap: (-len(gap.nodes), gap.operator, gap.reasons))
    return Coverage(backend, operators, tuple(found), tuple(_against_model(model, backend)))


def called_function(node: Node, backend: CoverageTarget) -> Function | None:
    """Return the local function that a node calls, if the target does not list the call."""
    if backend.rules(node.op_type, node.domain):
        return None
    return node.owner.model.function(*node.callee)


def checked_graphs(model: Model, backend: CoverageTarget) -> Iterator[Graph]:
    """Yield the main graph, its bodies, and called functions that the target does not list."""
    pending: list[Graph] = [model.main]
    seen: set[tuple[str, str, str]] = set()
    while pending:
        graph = pending.pop()
        yield graph
        pending += (body for node in graph.body_nodes for body in node.bodies)
        for node in graph.nodes:
            function = None if node.callee in seen else called_function(node, backend)
            if function is not None:
                seen.add(node.callee)
                pending.append(function)


def _against_model(model: Model, backend: CoverageTarget) -> Iterator[Refusal]:
    versions: tuple[tuple[str, int, Bounds], ...] = (
        ("opset", model.main.opset(), backend.opset),
        ("IR version", model.ir_version, backend.ir_version),
    )
    if "" not in model.opset_imports:
        versions = versions[1:]  # it has operators of other domains only
    for what, found, taken in versions:
        if not taken.holds(found):
            yield Refusal(f"{what} {found}", (str(taken),))
