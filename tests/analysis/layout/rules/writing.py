"""An operator in another order of its axes, for tests of how it is written."""

from itertools import permutations

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


def orders_of_operand(text: str, opset: int = 21) -> dict[str, str] | str:
    """Return the attributes and small constants that an operator is written with in each order of
    its first operand, by the order; or why it has none."""
    found = propagation_of(node_of(text, opset))
    if isinstance(found, Skip):
        return str(found)
    own = found.inputs[0]
    assert own is not None
    places = tuple(range(len(own)))
    return {
        "".join(map(str, perm)): _told(written(text, perm, opset))
        for perm in [*permutations(places)][1:]
        if found.in_order(own, places, perm) is not None
    }


def _told(node: Node) -> str:
    """Return the attributes of a node, and its constants of few elements by their slots."""
    attributes = [
        f"{name}={[*value] if isinstance(value, tuple) else value}"
        for name, value in sorted(node.attributes.items())
    ]
    arrays = {at: value.const for at, value in enumerate(node.inputs) if at and value is not None}
    constants = [
        f"{at}:{[round(each, 3) for each in array.ravel().tolist()]}"
        for at, array in arrays.items()
        if array is not None and array.size < _FEW
    ]
    return " ".join(each.replace(" ", "") for each in (*attributes, *constants))


_FEW = 9
