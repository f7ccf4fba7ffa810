"""How often a Loop runs, as far as constants decide it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

# More than any trip count can say.
_ENDLESS: Final = 1 << 63


def loop_turns(node: Node) -> int | str:
    """Return how often a Loop runs, or what is not known of that.

    Args:
        node: a Loop with a body that has the iteration number, the condition and the states of the
            node as inputs, and a condition as output.
    """
    (body,) = node.bodies
    most, condition = (_scalar(value, _ENDLESS) for value in node.inputs[:2])
    if (most is not None and most <= 0) or condition == 0:
        return 0
    if most is None:
        return "the number of iterations is not a constant"
    if condition is None:
        return "the condition is not a constant"
    if most == 1:
        return 1
    goes_on = body.outputs[0]
    while goes_on.producer is not None and goes_on.producer.op_type == "Identity":
        source = goes_on.producer.input(0)
        if source is None:
            break
        goes_on = source
    again = 1 if goes_on is body.inputs[1] else _scalar(goes_on, None)
    if again is None:
        return "the body decides when it ends"
    if not again:
        return 1
    return most if most < _ENDLESS else "nothing ends it"


def _scalar(value: Value | None, absent: int | None) -> int | None:
    """Return the one element of a constant; None for anything else."""
    if value is None:
        return absent
    tensor = value.tensor
    if tensor is None or tensor.size != 1 or tensor.is_sparse:
        return None
    return int(tensor.numpy().item())
