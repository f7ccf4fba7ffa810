"""What optimising a model gives besides the model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tiered.context import PassContext
from tiered.graph import Model, Tensor
from tiered.passes.report import Remark, Report
from tiered.pipeline.base import Pipeline

if TYPE_CHECKING:
    from tiered.graph import Node
    from tiered.runtime import Comparison
    from tiered.verify.instrument import Verify


def operator_name(node: Node) -> str:
    """Return the operator as people write it: Conv, com.microsoft::Gelu."""
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is in a model.

    Attributes:
        nodes: in the main graph, bodies and local functions together.
        operators: how many of each, the most frequent first; `com.microsoft::Gelu` with its domain.
        parameters: elements of all initializers and Constant nodes.
        nbytes: bytes of the model as a file, with external data.
    """

    nodes: int
    operators: dict[str, int]
    parameters: int
    nbytes: int

    @classmethod
    def of(cls, model: Model) -> Statistics:
        """Count what is in a model; no tensor's bytes are read."""
        operators: Counter[str] = Counter()
        tensors: list[Tensor] = []
        for graph in model.graphs():
            for node in graph.nodes:
                operators[operator_name(node)] += 1
            tensors += (v.default for v in graph.initializers if v.default is not None)
            constants = (node.constant_tensor() for node in graph.nodes_of("Constant"))
            tensors += (tensor for tensor in constants if tensor is not None)
        stored = sum(tensor.nbytes for tensor in tensors if tensor.is_on_disk)
        return cls(
            nodes=operators.total(),
            operators=dict(sorted(operators.items(), key=lambda item: (-item[1], item[0]))),
            parameters=sum(tensor.size for tensor in tensors),
            nbytes=model.skeleton_size() + stored,
        )


@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """An optimised model and how it came about.

    Attributes:
        model: the optimised model; `to_proto()`, `save(path)`.
        pipeline: the passes that were asked; `pipeline.plan(result.context)` says which run.
        context: the context they ran in, left by now.
        before, after: what the model held.
        seconds: the time that the passes took, without loading, with verification.
        verify: the instrument that verified, if that was asked for.
    """

    model: Model
    pipeline: Pipeline
    context: PassContext
    before: Statistics
    after: Statistics
    seconds: float
    verify: Verify | None = None

    @property
    def verified(self) -> tuple[Comparison, ...] | None:
        """How the outputs compared last, for each sample; None if nothing was run."""
        if self.verify is None or self.verify.how == "structure":
            return None
        return tuple(self.verify.comparisons)

    @property
    def report(self) -> Report:
        """The result of each pass, in order, with its time."""
        return self.context.report

    @property
    def remarks(self) -> list[Remark]:
        """What was applied, missed, skipped, found."""
        return self.context.remarks
