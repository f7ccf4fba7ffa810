"""The names of ExecuTorch and torch.fx: class passes, subgraph rewriting, matching.

Each name is an alias of a name of tiered, where the documentation is. Intended differences: a
`call` edits the model in place, and the journal records whether it changed anything, so it may
return None or `PassResult(model, True)`; a `requires` that returns a Skip is no error; no inner
value of a match may have other users.

    class ReplaceAdd(ExportPass):
        def call_operator(self, op, args, kwargs, meta):
            if op != "Add":
                return super().call_operator(op, args, kwargs, meta)
            return super().call_operator("Mul", args, {}, meta)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from tiered.context import PassContext
from tiered.graph import Model, Node, Value
from tiered.passes import NodeMapPass, Pass, PassBase, PassLike, module_pass
from tiered.pipeline import Sequential
from tiered.pipeline.pass_order import Constraint
from tiered.rewriter import (
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
    "this_before_that_pass_constraint",
]

InternalMatch = SubgraphMatch
ReplacedPatterns = ReplacedPattern
replace_pattern_with_filters = replace_pattern


class PassResult(NamedTuple):
    """The return value of a `call`: the edited model, and a flag.

    `modified` is ignored: the journal records whether the model changed.
    """

    graph_module: Model
    modified: bool


class ExportPass(NodeMapPass):
    """`NodeMapPass` with one method, `call_operator`, for `map_node` and `emit`."""

    def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        return self.call_operator(node.op_type, inputs, node.attributes, node.metadata)

    def call_operator(
        self,
        op: str,
        args: Sequence[Value | None],
        kwargs: Mapping[str, Any],
        meta: Mapping[str, str],
    ) -> Any:
        """Emit an operator with attributes; an unchanged node is kept."""
        node = self.node
        is_same = op == node.op_type and tuple(args) == node.inputs and kwargs == node.attributes
        if is_same and meta == node.metadata:
            return node.outputs
        count = len(node.outputs) if op == node.op_type else 1
        return self.emit(op, args, kwargs, domain=node.domain, outputs=count, metadata=meta)


class PassManager:
    """`Sequential` with methods that add passes and checks.

    Nested lists are flattened; a function of the model is a pass that may edit it in place.
    `add_checks` adds a check, `set_checks` replaces all checks.
    """

    def __init__(
        self,
        passes: Iterable[Any] = (),
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
        constraints: Iterable[Constraint] = (),
    ) -> None:
        self.passes: list[PassLike] = []
        self.constraints = list(constraints)
        self.checks: list[Callable[[Model], object]] = []
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        for item in passes:
            self.add_pass(item)

    def add_pass(self, item: Any) -> None:
        """Append a pass, or the passes of a list."""
        if isinstance(item, list | tuple):
            for inner in item:
                self.add_pass(inner)
        elif isinstance(item, FunctionType):
            self.passes.append(
                module_pass(opt_level=0, name=item.__name__)(lambda model, ctx: _edit(item, model))
            )
        else:
            self.passes.append(item)

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a constraint on the order of the passes."""
        self.constraints.append(constraint)

    def add_checks(self, check: Callable[[Model], object]) -> None:
        """Add a check."""
        self.checks.append(check)

    def set_checks(self, check: Callable[[Model], object]) -> None:
        """Replace all checks by one."""
        self.checks = [check]

    @property
    def pipeline(self) -> Sequential:
        """The equivalent `Sequential`."""
        return Sequential(
            self.passes,
            checks=self.checks,
            check_after_each=self.run_checks_after_each_pass,
            suppress_check_failures=self.suppress_check_failures,
            constraints=self.constraints,
        )

    def __call__(self, graph_module: Any) -> Any:
        return self.pipeline(graph_module)


def this_before_that_pass_constraint(this: Any, that: Any) -> Constraint:
    """Return the constraint that one pass runs before another, if both are present."""
    return _name(this), _name(that)


def _name(item: Any) -> str:
    if isinstance(item, str):
        return item
    return item.name if isinstance(item, Pass) else getattr(item, "__name__", type(item).__name__)


def _edit(function: FunctionType, model: Model) -> None:
    function(model)
