"""An operator of your own in every aspect: acme::Scale(x, by) is x * by, with one number `by` > 0.

`tiered operators acme::Scale --load own_operator.py` prints what is known of it.
"""

from collections.abc import Iterator

from tiered import Expr, Node, Step, shape_rule
from tiered.analysis.aspects import aspect
from tiered.analysis.axes.axis_map import AxisMap, whole
from tiered.graph.intervals.interval import multiply
from tiered.runtime.inputs.graph_facts import Fact, InputDependence
from tiered.verify import register_operator

register_operator("acme::Scale", body="Scale (x, by) => (y) { y = Mul(x, by) }")
shape_rule("Scale", domain="acme")(lambda node, operands: operands[0])
aspect("deterministic").put(["Scale"], "acme", "it is a product")
aspect("range").rule("Scale", domain="acme")(lambda call: multiply(call.x, call.operand(1)))
aspect("cost").rule("Scale", domain="acme")(lambda node, sizes: sizes.result)
aspect("move").rule("Scale", domain="acme")(lambda node, operands: operands[0] * operands[1])

# In these it is a Mul: the rule holds for all operators that compute element by element.
for name in ("value", "integer", "rank", "count"):
    aspect(name).rule("Scale", domain="acme")(aspect(name).find(("", "Mul")))


@aspect("gradient").rule("Scale", domain="acme")
def gradient(step: Step) -> tuple[Expr, Expr | None]:
    by = (step.g * step.x).sum(keepdims=False) if step.wants(1) else None
    return step.g * step.operand(1), by


@aspect("axes").rule("Scale", domain="acme")
def axes(node: Node) -> AxisMap:
    own = whole(node.output.rank or 0)
    return AxisMap((own, None), (own,))


@aspect("check").rule("Scale", domain="acme")
def check(node: Node) -> str | None:
    by = node.input(1)
    return "`by` is one number" if by is not None and by.rank else None


@aspect("input").rule("Scale", domain="acme")
def demand(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 1:
        yield Fact("positive", "Scale by")
