"""Class passes, subgraph rewriting and matching by the names of ExecuTorch and torch.fx.

Each name is an alias of a name of tiered, where the documentation is. A call of a pass or of a
`PassManager` returns a `PassResult`; for a ModelProto, `graph_module` is a new ModelProto.
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

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import onnx
from onnx import defs

from tiered import passes
from tiered.compat.executorch.fx_graph import FxGraph, GraphModule
from tiered.compat.executorch.fx_node import FxNode
from tiered.compat.returned_model import checked, take_over
from tiered.context import PassContext
from tiered.extensions.partition import (
    CapabilityBasedPartitioner as _Partitioner,
    OperatorSupport,
    Partition,
    SourcePartition,
    any_chain,
    create_op_support,
    get_source_partitions as _source_partitions,
)
from tiered.extensions.partition.partitioner import Supports
from tiered.extensions.partition.sources import Source
from tiered.graph import Graph, Model, Node, Value
from tiered.passes import NodeMapPass, Pass, PassLike, module_pass
from tiered.passes.kinds.decorators import Declared
from tiered.pipeline import Sequential, get_pass
from tiered.pipeline.pass_order import Constraint
from tiered.rewriter import (
    ReplacedPattern,
    SubgraphMatch,
    SubgraphMatcher as _Matcher,
    replace_pattern,
)
from tiered.rewriter.subgraphs.pattern_text import PatternLike
from tiered.rewriter.subgraphs.replace_pattern import MatchFilter
from tiered.support.errors import UsageError

InternalMatch = SubgraphMatch
ReplacedPatterns = ReplacedPattern


AnyGraph: TypeAlias = "Graph | Model | onnx.ModelProto | FxGraph"


def _view(graph: AnyGraph) -> Graph | Model:
    """Return a graph or model as a view."""
    if isinstance(graph, onnx.ModelProto):
        return Model.from_proto(graph)
    return graph.model if isinstance(graph, FxGraph) else graph


def get_source_partitions(
    graph: AnyGraph,
    wanted_sources: Iterable[Source],
    filter_fn: Callable[[Node], bool] | None = None,
) -> dict[Source, list[SourcePartition]]:
    """`tiered.extensions.partition.get_source_partitions`, with the filter of torch.fx.

    Args:
        graph: a graph, or a model for its main graph.
        wanted_sources: the sources, which are the keys of the result.
        filter_fn: keeps the partitions for all of whose nodes it returns True.
    """
    found = _source_partitions(_view(graph), wanted_sources)
    if filter_fn is None:
        return found
    kept = {
        source: [each for each in partitions if all(map(filter_fn, each.nodes))]
        for source, partitions in found.items()
    }
    return {source: partitions for source, partitions in kept.items() if partitions}


def replace_pattern_with_filters(
    gm: Model | Graph,
    pattern: PatternLike,
    replacement: PatternLike,
    match_filters: Iterable[MatchFilter] | None = None,
) -> list[ReplacedPattern]:
    """`replace_pattern` with the argument names of torch.fx.

    Raises:
        UsageError: `gm` is neither a Model nor a Graph: it is edited in place.
    """
    return replace_pattern(gm, pattern, replacement, filters=match_filters or ())


class SubgraphMatcher(_Matcher):
    """`tiered.SubgraphMatcher`, which also takes a ModelProto."""

    def match(self, graph: AnyGraph) -> list[SubgraphMatch]:
        """Return the matches in topological order; those of a ModelProto are in a view of it."""
        return super().match(_view(graph))


class OperatorSupportBase(OperatorSupport):
    """Decides whether a target takes a node; a partitioner calls it with nodes of torch.fx.

    Such a node has the attributes of a `tiered.Node` too.
    """

    def is_node_supported(self, graph: Any, node: Any) -> bool:
        """Return whether the target takes a node; by the table, unless a subclass says."""
        return super().is_node_supported(graph, node)


def _of_tiered(support: Supports) -> Supports:
    """Return a support of nodes of torch.fx as one of tiered's nodes."""
    if not isinstance(support, OperatorSupportBase):
        return support

    def takes(graph: Graph, node: Node) -> bool:
        model = graph.model
        assert isinstance(model, Model)
        return bool(support.is_node_supported(graph, FxNode(FxGraph(model), node)))

    return create_op_support(takes)


class CapabilityBasedPartitioner(_Partitioner):
    """`tiered.extensions.partition.CapabilityBasedPartitioner` by the names of torch.fx.

    Args:
        graph_module: a graph or a model; a ModelProto stays as it is, and `graph` is a view of it.
        operator_support: which nodes the target takes.
        options: as there.
    """

    def __init__(
        self,
        graph_module: AnyGraph,
        operator_support: Supports,
        *options: Any,
        **named: Any,
    ) -> None:
        super().__init__(_view(graph_module), _of_tiered(operator_support), *options, **named)

    def fuse_partition(self, partitions: Iterable[Partition]) -> Any:
        """Replace each partition by a call of a new local function, and return the graph."""
        return self.fuse_partitions(partitions)


def generate_partitions_from_list_of_nodes(
    graph_module: AnyGraph,
    pattern_list: Iterable[Iterable[Node | FxNode]] | None = None,
    op_support: Supports | None = None,
) -> list[Partition]:
    """Return the partitions of nodes that are listed, or that a support takes.

    Args:
        graph_module: a graph or a model, which has the nodes.
        pattern_list: lists of nodes; a partition may have those of several.
        op_support: which other nodes the target takes.

    Raises:
        UsageError: neither is given, the support is one for each target, or what is listed is no
            node of the graph.
    """
    if pattern_list is None and op_support is None:
        raise UsageError(
            "generate_partitions_from_list_of_nodes needs a pattern_list, or an op_support, or both"
        )
    view = _view(graph_module)
    graph = view.main if isinstance(view, Model) else view
    listed = {_listed(graph, node) for nodes in pattern_list or () for node in nodes}
    supports = [create_op_support(lambda graph, node: node in listed)]
    if op_support is not None:
        taken = _of_tiered(op_support)
        if isinstance(taken, Mapping):
            raise UsageError("op_support is one support, not one for each target")
        supports.append(taken)
    partitioner = _Partitioner(graph, any_chain(*supports), allows_single_node_partition=True)
    return partitioner.propose_partitions()


def _listed(graph: Graph, node: object) -> Node:
    """Return a node of a list, or raise if the graph does not have it."""
    found = node.subject if isinstance(node, FxNode) else node
    if not isinstance(found, Node) or found.graph is not graph:
        raise UsageError(f"{node!r} is no operator of graph {graph.name!r}")
    return found


class PassResult(NamedTuple):
    """The return value of a `call`: the edited model, and a flag.

    `modified` is ignored: the journal records whether the model changed.
    """

    graph_module: Any
    modified: bool


class PassBase(passes.PassBase):
    """`tiered.PassBase`, called as in torch.fx: the result has the model in `graph_module`."""

    def as_pass(self) -> Pass:
        """Return the pass that calls this object; a model that it returns replaces the content."""
        declared: Declared = {
            "name": type(self).__name__,
            "requires": self.requires,
            "ensures": self.ensures,
            **self.declared,
        }

        def call(model: Model, ctx: PassContext) -> object:
            return take_over(model, self.call(GraphModule.of(model)), ctx)

        call.__doc__ = type(self).__doc__
        call.__module__ = type(self).__module__
        return module_pass(opt_level=self.opt_level, **declared)(call)

    def __call__(self, graph_module: Any) -> Any:
        """Run the pass, hold the result against onnx.checker, and return a `PassResult`."""
        return _result(checked(self.as_pass()), graph_module)


class _BuiltInPass(PassBase):
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


class ExportPass(NodeMapPass, PassBase):
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

    Nested lists are flattened. Anything that is called with the model is a pass: a function, a
    lambda, a partial, a bound method. It edits the model, or returns another one.
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
        elif isinstance(item, str | Pass | passes.PassBase) or not callable(item):
            self.passes.append(item)
        else:
            self.passes.append(
                module_pass(opt_level=0, name=_name(item))(
                    lambda model, ctx: take_over(model, item(GraphModule.of(model)), ctx)
                )
            )

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
        """Run the passes, hold the result against onnx.checker, and return a `PassResult`."""
        return _result(checked(self.pipeline), graph_module)


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


def _result(pass_: Pass, graph_module: Any) -> PassResult:
    """Run a pass, and return the model and whether it changed."""
    if isinstance(graph_module, onnx.ModelProto):
        view = Model.from_proto(graph_module)
        return _result(pass_, view)._replace(graph_module=view.to_proto())
    before = graph_module.journal.stamp() if isinstance(graph_module, Model) else None
    made = pass_(graph_module)
    return PassResult(made, before is not None and made.journal.moved_since(before))


def _name(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, Pass):
        return item.name
    function = item.func if isinstance(item, partial) else item
    name = getattr(function, "__name__", type(function).__name__)
    return "function" if name == "<lambda>" else str(name)
