"""Class passes and managers by the names of ExecuTorch and torch.fx.

Each name is an alias of a name of tiered, where the documentation is. A call of a pass or of a
`FxPassManager` returns a `FxPassResult`; for a ModelProto, `graph_module` is a new ModelProto.
Intended differences: a `call` edits the model in place, or returns another one; the journal records
whether it changed anything; a `requires` that returns a Skip is no error; no inner value of a match
may have other users.

    class ReplaceAdd(ExportPass):
        def call_operator(self, op, args, kwargs, meta):
            if op != "Add":
                return super().call_operator(op, args, kwargs, meta)
            return super().call_operator("Mul", args, {}, meta)

    model = ReplaceAdd()(model).graph_module
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, ClassVar, NamedTuple

import onnx
from onnx import defs

from tiered import passes
from tiered.compat.executorch.fx_graph import FxGraphModule
from tiered.compat.executorch.fx_node import FxTarget, needed_operator
from tiered.compat.returned_model import checked, take_over
from tiered.context import PassContext
from tiered.graph import Model, Node, Value
from tiered.passes import NodeMapPass, Pass, PassLike, module_pass
from tiered.passes.kinds.declared import Declared
from tiered.pipeline import Sequential, get_pass
from tiered.pipeline.pass_order import Constraint
from tiered.support.errors import UsageError


class CheckError(UsageError, TypeError):
    """A check cannot be called with a module; a TypeError, as in torch.fx."""


class FxPassResult(NamedTuple):
    """The return value of a `call`: the edited model, and a flag.

    `modified` is ignored: the journal records whether the model changed.
    """

    graph_module: Any
    modified: bool


class FxPassBase(passes.PassBase):
    """`tiered.PassBase`, called as in torch.fx: the result has the model in `graph_module`.

    `requires` and `ensures` are the precondition and the postcondition.
    """

    def requires(self, graph_module: Any) -> object:
        """Check the model before the pass."""

    def ensures(self, graph_module: Any) -> object:
        """Check the model after the pass."""

    def as_pass(self) -> Pass:
        """Return the pass that calls this object; a model that it returns replaces the content."""
        declared: Declared = {
            "name": type(self).__name__,
            "precondition": _of_module(self.requires),
            "postcondition": _of_module(self.ensures),
            **self.declared,
        }

        def call(model: Model, ctx: PassContext) -> object:
            return take_over(model, self.call(FxGraphModule.of(model)), ctx)

        call.__doc__ = type(self).__doc__
        call.__module__ = type(self).__module__
        return module_pass(opt_level=self.opt_level, **declared)(call)

    def __call__(self, graph_module: Any) -> Any:
        """Run the pass, hold the result against onnx.checker, and return a `FxPassResult`."""
        return _result(checked(self.as_pass()), graph_module)


def _of_module(function: Callable[[Any], object]) -> Callable[[Model], object]:
    """Return a function of a model that calls one of a module of torch.fx with it."""

    @wraps(function)
    def called(model: Model) -> object:
        return function(FxGraphModule.of(model))

    return called


class _BuiltInPass(FxPassBase):
    """A pass of tiered under the name of ExecuTorch's class."""

    pass_name: ClassVar[str]

    def as_pass(self) -> Pass:
        return get_pass(self.pass_name)


class RemoveDetachPass(_BuiltInPass):
    """`eliminate_identity`: an exporter writes detach as Identity."""

    pass_name = "eliminate_identity"


class ScalarToTensorPass(_BuiltInPass):
    """`attribute_to_input`: scalars that are attributes become operands."""

    pass_name = "attribute_to_input"


class ExportPass(NodeMapPass, FxPassBase):
    """`NodeMapPass` with one method, `call_operator`, for `map_node` and `emit`.

    `op` is the name of an operator, `Relu` or `com.microsoft::Gelu`. It is equal to a function of
    torch of its name: `op == torch.ops.aten.relu.default`.
    """

    def as_pass(self) -> Pass:
        return FxPassBase.as_pass(self)

    def call(self, graph_module: Any) -> FxPassResult:
        """Visit every graph, and return a `FxPassResult`; an override of `call` may build on it."""
        if isinstance(graph_module, onnx.ModelProto):
            view = Model.from_proto(graph_module)
            return ExportPass.call(self, view)._replace(graph_module=view.to_proto())
        before = graph_module.journal.stamp()
        super().call(graph_module)
        return FxPassResult(graph_module, graph_module.journal.moved_since(before))

    def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        return self.call_operator(FxTarget(node.operator), inputs, node.attributes, node.metadata)

    def call_operator(
        self,
        op: Any,
        args: Sequence[Value | None],
        kwargs: Mapping[str, Any],
        meta: Mapping[str, str],
    ) -> Any:
        """Emit an operator with attributes; an unchanged node is kept.

        Raises:
            UsageError: `op` is no operator, or a function with other operands.
        """
        node, target = self.node, FxTarget(needed_operator(op, self.node.owner))
        is_kept = target == node.operator
        is_same = is_kept and tuple(args) == node.inputs and kwargs == node.attributes
        if is_same and meta == node.metadata:
            return node.outputs
        count = len(node.outputs) if is_kept else 1
        return self.emit(
            target.op_type, args, kwargs, domain=target.domain, outputs=count, metadata=meta
        )


class FxPassManager:
    """`Sequential` with methods that add passes and checks.

    Nested lists are flattened. Anything that is called with the model is a pass: a function, a
    lambda, a partial, a bound method. It edits the model, or returns another one.
    `add_checks` adds a check, `set_checks` replaces all checks.
    """

    def __init__(
        self,
        passes: Iterable[Any] | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
        constraints: Iterable[Constraint] | None = None,
    ) -> None:
        self.passes: list[PassLike] = []
        self.constraints = list(constraints or ())
        self.checks: list[Callable[[Model], object]] = []
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        is_one = isinstance(passes, str) or not isinstance(passes, Iterable | None)
        self.add_pass([passes] if is_one else list(passes or ()))

    def add_pass(self, item: Any) -> None:
        """Append a pass, or the passes of a list."""
        if isinstance(item, list | tuple):
            for inner in item:
                self.add_pass(inner)
        elif isinstance(item, str | Pass | passes.PassBase) or not callable(item):
            self.passes.append(item)
        else:
            self.passes.append(
                module_pass(opt_level=0, name=_name(item))(
                    lambda model, ctx: take_over(model, item(FxGraphModule.of(model)), ctx)
                )
            )

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a constraint on the order of the passes."""
        self.constraints.append(constraint)

    def add_checks(self, check: Callable[[Any], object]) -> None:
        """Add a check: a function of the module, which raises if it is wrong.

        Raises:
            CheckError: it does not take one argument.
        """
        self.checks.append(_checking(check))

    def set_checks(self, check: Callable[[Any], object]) -> None:
        """Replace all checks by one.

        Raises:
            CheckError: it does not take one argument.
        """
        self.checks = [_checking(check)]

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
        """Run the passes, hold the result against onnx.checker, and return a `FxPassResult`."""
        return _result(checked(self.pipeline), graph_module)


def _checking(check: Callable[[Any], object]) -> Callable[[Model], object]:
    try:
        inspect.signature(check).bind(None)
    except TypeError as error:
        raise CheckError(f"a check takes one argument, the module: {error}") from error
    return _of_module(check)


def this_before_that_pass_constraint(this: Any, that: Any) -> Constraint:
    """Return the constraint that one pass runs before another, if both are present."""
    return _name(this), _name(that)


def args_map(
    op: str,
    fn: Callable[[Any, Any], Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    domain: str = "",
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return operands and attributes after `fn(value, schema)` of each.

    ONNX has as attributes what torch has as scalar arguments.

    Args:
        op: the operator.
        fn: gets an operand and its formal parameter, or an attribute and its declaration; None
            where the operator has no schema. Absent operands are left out.
        args: the operands.
        kwargs: the attributes.
        domain: of the operator.
    """
    schema = defs.get_schema(op, domain) if defs.has(op, domain) else None
    formals = list(schema.inputs) if schema is not None else []

    def formal(at: int) -> Any:
        return formals[min(at, len(formals) - 1)] if formals else None

    mapped = tuple(v if v is None else fn(v, formal(at)) for at, v in enumerate(args))
    declared = schema.attributes if schema is not None else {}
    return mapped, {name: fn(value, declared.get(name)) for name, value in kwargs.items()}


def _result(pass_: Pass, graph_module: Any) -> FxPassResult:
    """Run a pass, and return the model and whether it changed."""
    if isinstance(graph_module, onnx.ModelProto):
        view = Model.from_proto(graph_module)
        return _result(pass_, view)._replace(graph_module=view.to_proto())
    before = graph_module.journal.stamp() if isinstance(graph_module, Model) else None
    made = pass_(graph_module)
    return FxPassResult(made, before is not None and made.journal.moved_since(before))


def _name(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, Pass):
        return item.name
    function = item.func if isinstance(item, partial) else item
    name = getattr(function, "__name__", type(function).__name__)
    return "function" if name == "<lambda>" else str(name)
