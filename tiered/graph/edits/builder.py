"""The builder behind `graph.op`: nodes in their newest form, written in the form of the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tiered.graph.core.operator_calls import OperatorCalls
from tiered.graph.edits.literals import as_operands
from tiered.graph.edits.operator_check import call_error, check_call
from tiered.graph.opset.newest_form import newest_form, to_model_form

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.operator_calls import Build, Operand


class OpBuilder(OperatorCalls):
    """Makes nodes after it checked the call; see `OperatorCalls`."""

    __slots__ = ()

    def _attributes_of(self, node: Node) -> dict[str, Any]:
        form = newest_form(node)
        # Where an operand was an attribute, callers give it as they read it.
        if form is None or form.operands != list(node.inputs):
            return node.attributes
        bodies = node.attribute_protos().keys() - node.attributes.keys()
        return {name: value for name, value in form.attributes.items() if name not in bodies}

    def named(self, op_type: str) -> Build:
        """Return `graph.op.<op_type>`, for an operator that is known only at run time."""

        def build(
            *inputs: Operand,
            outputs: int = 1,
            name: str | None = None,
            **attributes: Any,
        ) -> Any:
            graph, domain = self._graph, self._domain
            operands = as_operands(graph, op_type, domain, inputs)
            check_call(graph, op_type, domain, operands, attributes, outputs)
            graph.import_domain(domain, op_type)
            slots, written = to_model_form(graph, op_type, domain, operands, attributes, outputs)
            hint = name or graph.model.hint
            try:
                node = graph.add_node(op_type, slots, outputs, written, domain=domain, name=hint)
            except (TypeError, ValueError) as error:
                found = f"the type of an attribute differs from the schema: {error}"
                raise call_error(graph, op_type, domain, found) from error
            return node.output if outputs == 1 else node.outputs

        return build


def operators_of(graph: Graph) -> OperatorCalls:
    """Return the builder of nodes in a graph."""
    return OpBuilder(graph, "")
