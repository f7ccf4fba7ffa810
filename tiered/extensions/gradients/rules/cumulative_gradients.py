"""Gradients of sums and products up to each element of an axis."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, gradient_rule
from tiered.graph import TensorType


@gradient_rule("CumSum")
def cum_sum(step: Step) -> Sequence[Expr | None]:
    """dx = the sums of g in the other direction"""
    node = step.node
    reverse = 1 - int(node.attr("reverse"))
    exclusive = int(node.attr("exclusive"))
    axis = step.operand(1)
    return step.g.call("CumSum", step.g, axis, exclusive=exclusive, reverse=reverse), None


@gradient_rule("CumProd")
def cum_prod(step: Step) -> Sequence[Expr | None]:
    """dx_j = p_j s_j, where p_j is the product of the elements before x_j

    s_j = g_j + x_{j+1} s_{j+1} is a recurrence from the end, so that no element is a divisor: the
    gradient also holds where some are 0. With exclusive=1, s_j = g_{j+1} + x_{j+1} s_{j+1}.
    """
    node, x = step.node, step.x
    axis = 0 if x.rank == 1 else (step.axes(1) or [0])[0]
    reverse = int(node.attr("reverse"))
    before = x.call("CumProd", x, step.operand(1), exclusive=1, reverse=reverse)
    return before * _recurrence(step, axis, 1 - reverse), None


def _recurrence(step: Step, axis: int, reverse: int) -> Expr:
    """Return s by a Scan along the axis: s_j = g_j + t_j and t_j = x_{j+1} s_{j+1}."""
    x, graph, names = step.x, step.graph, step.graph.model.names
    exclusive = int(step.node.attr("exclusive"))
    start = x.zeros().sum([axis], keepdims=False)
    settings = {
        "num_scan_inputs": 2,
        "scan_input_axes": [axis, axis],
        "scan_input_directions": [reverse, reverse],
        "scan_output_axes": [axis],
        "scan_output_directions": [reverse],
    }
    operands = [start.value, x.value, step.g.value]
    made = graph.add_node("Scan", operands, 2, settings, name=step.name, bodies=["body"])
    body = made.bodies[0]
    body.skeleton.name = step.name
    dims = x.value.shape
    assert dims is not None
    row = TensorType(x.dtype, (*dims[:axis], *dims[axis + 1 :]))
    later, own, g = (
        Expr(body, body.add_input(names.fresh(name), row), step.name) for name in ("t", "x", "g")
    )
    total = later if exclusive else g + later
    following = g + own * later if exclusive else own * total
    for result in (following, total):
        body.add_output(result.call("Identity", result).value)
    rows = made.outputs[1]
    assert rows is not None
    return step.of(rows)
