"""The orders that operators have, and what they are written as in each."""

from itertools import permutations

from tests.analysis.layout.rules.writing import known, node_of, orders_of_operand
from tests.recorded import assert_values


def write(text: str, opset: int = 21) -> None:
    """Print what an operator is written with in each order of its first operand."""
    found = orders_of_operand(text, opset)
    if isinstance(found, str):
        print(found)
    else:
        print("; ".join(f"{order}: {written or '-'}" for order, written in found.items()) or "none")


def orders(text: str, opset: int = 21) -> None:
    """Print the labels of an operator, and the orders of all labels that it allows."""
    found = known(node_of(text, opset))
    print(*found.inputs, "=>", *found.outputs)
    print(*[_joined(order) for order in permutations(found.labels) if found.allows(order)])


def _joined(order: tuple[int, ...]) -> str:
    return ".".join(map(str, order))


def test_the_orders_of_operators() -> None:
    assert_values(__file__, {"write": write, "orders": orders})
