"""ExecuTorch's and torch.fx's names: passes over exported programs, subgraph rewriting, matching.

Names only: each is one of ours, whose documentation holds. What differs on purpose: a `call` edits
the model in place, and the journal knows whether it changed anything; a `requires` that returns a
Skip is no error; a match must leave no value that somebody else reads.

    class ReplaceAdd(ExportPass):
        def call_operator(self, op, args, kwargs, meta):
            if op != "Add":
                return super().call_operator(op, args, kwargs, meta)
            return super().call_operator("Mul", args, {}, meta)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tiered.context import PassContext
from tiered.control.report import PassResult
from tiered.graph import Node, Value
from tiered.passes import NodeMapPass, PassBase
from tiered.pipeline import Sequential
from tiered.rewrite import (
    Match,
    ReplacedPattern,
    SubgraphMatch,
    SubgraphMatcher,
    replace_pattern,
)

__all__ = [
    "ExportPass",
    "InternalMatch",
    "Match",
    "PassBase",
    "PassContext",
    "PassManager",
    "PassResult",
    "ReplacedPatterns",
    "SubgraphMatcher",
    "replace_pattern",
    "replace_pattern_with_filters",
]

InternalMatch = SubgraphMatch
PassManager = Sequential
ReplacedPatterns = ReplacedPattern
replace_pattern_with_filters = replace_pattern


class ExportPass(NodeMapPass):
    """`NodeMapPass`, whose `map_node` and `emit` are one method, `call_operator`."""

    def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        return self.call_operator(node.op_type, inputs, node.attributes, node.metadata)

    def call_operator(
        self,
        op: str,
        args: Sequence[Value | None],
        kwargs: Mapping[str, Any],
        meta: Mapping[str, str],
    ) -> Any:
        """Emit an operator with attributes; without a change, the node that is there stays."""
        node = self.node
        is_same = op == node.op_type and tuple(args) == node.inputs and kwargs == node.attributes
        if is_same and meta == node.metadata:
            return node.outputs
        count = len(node.outputs) if op == node.op_type else 1
        return self.emit(op, args, kwargs, domain=node.domain, outputs=count, metadata=meta)
