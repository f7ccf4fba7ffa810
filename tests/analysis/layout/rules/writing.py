"""An operator in another order of its axes, for tests of how it is written."""

from tests.analysis.layout.test_rules import write_in_order
from tiered import Model, Node, Skip
from tiered.analysis.layout.axis_propagation import AxisPropagation, Labels
from tiered.analysis.layout.rules import propagation_of
from tiered.testing import parse


def node_of(text: str, opset: int = 21) -> Node:
    """Return the one node of a text beside constants."""
    (node,) = (
        node for node in Model.from_proto(parse(text, opset=opset)).main.nodes
        if node.op_type != "Constant"
    )  # fmt: skip
    return node


def known(node: Node) -> AxisPropagation:
    """Return how permutations pass through a node; some do."""
    found = propagation_of(node)
    assert not isinstance(found, Skip), str(found)
    return found


def order_of(node: Node, perm: tuple[int, ...], *, of_result: bool = False) -> Labels | None:
    """Return the order of an operator whose first operand, or result, is permuted."""
    propagation = known(node)
    own = propagation.outputs[0] if of_result else propagation.inputs[0]
    assert own is not None
    return propagation.in_order(own, tuple(range(len(own))), perm)


def written(text: str, perm: tuple[int, ...], opset: int = 21, *, of_result: bool = False) -> Node:
    """Return an operator as it is written where its first operand, or result, is permuted."""
    node = node_of(text, opset)
    order, model, name = order_of(node, perm, of_result=of_result), node.owner.model, node.op_type
    assert order is not None
    write_in_order(node, known(node), order)
    (made,) = (each for each in model.main.nodes if each.op_type == name)
    return made


def allows(text: str, perm: tuple[int, ...], opset: int = 21) -> bool:
    """Return whether an operator can have its first operand in an order."""
    return order_of(node_of(text, opset), perm) is not None
