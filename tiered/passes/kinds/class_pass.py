"""Passes as objects: `PassBase`, with conditions; `NodeMapPass`, the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from tiered.context import PassContext
from tiered.graph import Graph, Model, Node, Value
from tiered.graph.opset.newest_form import NoEquivalentForm
from tiered.passes.base import AnyModel, Pass
from tiered.passes.kinds.declared import Declared, method_of
from tiered.passes.kinds.decorators import module_pass
from tiered.passes.pass_run import edited_by
from tiered.rewriter import Skip
from tiered.rewriter.driver import why_not_replaceable
from tiered.support.errors import UsageError

Outcome = Value | Sequence[Value | None] | Skip


PassLike: TypeAlias = "Pass | PassBase | str"
"""A member of a pipeline: a pass, an object that is one, or a name."""


class PassBase:
    """A pass as an object with state: called with a model, or a member of a pipeline.

    `precondition` and `postcondition` check the model: they raise or return False if it is not as
    required; `precondition` may return a Skip if there is nothing to do.
    """

    opt_level: ClassVar[int | None] = None
    declared: ClassVar[Declared] = {}

    def call(self, model: Model) -> object:
        """Edit the model in place."""
        raise NotImplementedError(f"{type(self).__name__} has no call(model)")

    def precondition(self, model: Model) -> object:
        """Check the model before the pass."""

    def postcondition(self, model: Model) -> object:
        """Check the model after the pass."""

    def as_pass(self) -> Pass:
        """Return the pass that calls this object."""

        def call(model: Model, ctx: PassContext) -> None:
            outcome = self.call(model)
            if outcome is not None and edited_by(outcome) is not model:
                raise UsageError(f"{type(self).__name__}.call edits the model and returns nothing")

        call.__doc__ = type(self).__doc__
        call.__module__ = type(self).__module__
        declared: Declared = {
            "name": type(self).__name__,
            "precondition": method_of(self, "precondition"),
            "postcondition": method_of(self, "postcondition"),
            **self.declared,
        }
        return module_pass(opt_level=self.opt_level, **declared)(call)

    def __call__(self, model: AnyModel) -> AnyModel:
        """Run as any pass runs; see `Pass.__call__`."""
        return self.as_pass()(model)


class NodeMapPass(PassBase):
    """The interpreter: visits each node in topological order and returns its replacement.

    A subclass is made a pass by `@function_pass(...)`, then its constructor's parameters are the
    options; an instance is a pass as any `PassBase` is.

        class Negate(NodeMapPass):
            def map_node(self, node, inputs):
                if node.op_type != "Sub":
                    return super().map_node(node, inputs)
                return self.emit("Add", (inputs[0], self.emit("Neg", inputs[1:])))
    """

    into_bodies: ClassVar[bool] = False
    """Whether the nodes of If, Loop and Scan bodies are visited too."""

    graph: Graph
    node: Node

    def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Outcome:
        """Return the replacement of the node's outputs; by default they themselves.

        An input deletes the node, a result of `emit` replaces it, a Skip states why it stays.
        """
        return node.outputs

    def emit(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Any] | None = None,
        *,
        domain: str = "",
        outputs: int = 1,
        metadata: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the output of a new node, or all of them; as often as needed for one node.

        The arguments are those of the newest opset. The new node gets the metadata and the doc
        string of the visited node, and `metadata`. A node equal to the visited one is not made.
        """
        source, proto = self.node, self.node.proto
        written = dict(attributes or {})
        same = (op_type, domain, tuple(inputs)) == (source.op_type, source.domain, source.inputs)
        if same and written == source.attributes and not metadata and not source.bodies:
            return source.outputs if outputs > 1 else source.output
        operator: Any = self.graph.op(domain).named(op_type)
        made = operator(*inputs, outputs=outputs, **written)
        node = (made if outputs == 1 else made[0]).producer
        node.sources = (source,)
        node.proto.doc_string = proto.doc_string
        for key, text in {**source.metadata, **(metadata or {})}.items():
            node.proto.metadata_props.add(key=key, value=text)
        return made

    # --- running ----------------------------------------------------------------------------------

    def call(self, model: Model) -> object:
        """Visit every graph."""
        for graph in tuple(model.graphs()):
            self.transform_graph(graph, PassContext.current())
        return None

    def transform_graph(self, graph: Graph, ctx: PassContext) -> None:
        """Visit the nodes of one graph."""
        if graph.parent_node is not None and not self.into_bodies:
            return
        self.graph = graph
        for node in graph.topological_order():
            if node.graph is graph:
                self._visit(node, ctx)

    def _visit(self, node: Node, ctx: PassContext) -> None:
        graph, model = self.graph, self.graph.model
        self.node, model.hint = node, node.label or None
        mark, first_new = model.mark(), model.peek_serial()
        try:
            with graph.rewrite(f"{type(self).__name__} of {node.op_type}", node):
                refusal = self._replace(node, first_new)
                if refusal is not None:
                    model.undo_to(mark)
                    ctx.skip(node, refusal)
        finally:
            model.hint = None

    def _replace(self, node: Node, first_new: int) -> Skip | None:
        try:
            outcome = self.map_node(node, node.inputs)
        except NoEquivalentForm as error:
            return Skip("{}", error)
        if isinstance(outcome, Skip):
            return outcome
        values = tuple(outcome) if isinstance(outcome, tuple | list) else (outcome,)
        if values == node.outputs:
            return None
        refusal = why_not_replaceable(node, values)
        if refusal is None:
            self.graph.replace(node, values, first_new)
        return refusal
