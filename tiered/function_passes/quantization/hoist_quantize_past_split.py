"""QuantizeLinear of each part of Split(x), equal ones  =>  the parts of Split(QuantizeLinear(x))"""

from tiered import Graph, Node, PassContext, Skip, function_pass
from tiered.rewriter.idioms.quantization_parts import is_along, settings_of, why_not_moved


@function_pass(
    opt_level=None,
    required=("infer_shapes",),
    matches=("Split",),
    touches=("QuantizeLinear", "com.microsoft::QuantizeLinear"),
)
def hoist_quantize_past_split(graph: Graph, ctx: PassContext) -> None:
    """Quantise once, and split integers instead of floats."""
    for split in graph.topological_order():
        if not split.is_op("Split"):
            continue
        units = _units(split)
        if isinstance(units, Skip):
            ctx.skip(split, units)
            continue
        with graph.rewrite("QuantizeLinear(Split(x)) => Split(QuantizeLinear(x))", split):
            count, others = len(split.outputs), split.operands[1:]
            q = graph.op.like(units[0], split.input(0), *units[0].inputs[1:])
            parts = graph.op.like(split, q, *others, outputs=count, split=None)
            for unit, part in zip(units, parts, strict=True):
                graph.replace(unit, [part])


def _units(split: Node) -> list[Node] | Skip:
    """Return the QuantizeLinear of each part, all of the same parameters."""
    units = []
    for part in split.outputs:
        readers = [] if part is None else part.readers
        unit = readers[0] if len(readers) == 1 else None
        if part is None or unit is None or unit.op_type != "QuantizeLinear":
            return Skip("a part is not quantised")
        if not part.is_only_read_by(unit) or unit.input(0) is not part:
            return Skip("a part has other consumers")
        units.append(unit)
    first = units[0]
    if len(units) == 1:
        return Skip("there is one part")
    if any(settings_of(unit) != settings_of(first) for unit in units):
        return Skip("the parts have different scales or zero points")
    if split.parameter_reason or first.parameter_reason:
        return Skip("an attribute is a function parameter")
    if reason := why_not_moved(first):
        return reason
    if is_along(first, int(split.attr("axis")), split.given(0).rank):
        return Skip("the scales vary along the axis of Split")
    return units
