"""Inputs and outputs  =>  the same in another order"""

from collections.abc import Callable, Sequence

from tiered import Model, PassContext, Skip, UsageError, Value, module_pass
from tiered.rewriter.idioms.main_tensors import input_named, output_named

Find = Callable[[Model, str, str], Value]


@module_pass(opt_level=None, changes_interface=True)
def reorder(
    model: Model, ctx: PassContext, *, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()
) -> Skip | None:
    """Move inputs and outputs to the front, in the given order; the others follow in theirs.

    Args:
        inputs: names of inputs.
        outputs: names of outputs.

    Raises:
        UsageError: the model has no such input or output, or one is named twice.
    """
    graph = model.main
    first = _ordered(model, inputs, graph.inputs, input_named)
    last = _ordered(model, outputs, graph.outputs, output_named)
    if first == list(graph.inputs) and last == list(graph.outputs):
        return Skip("the order is the same")
    if first != list(graph.inputs):
        graph.order_inputs(first)
    if last != list(graph.outputs):
        graph.order_outputs(last)
    return None


def _ordered(
    model: Model, names: Sequence[str], values: Sequence[Value], find: Find
) -> list[Value]:
    if len({*names}) < len(names):
        raise UsageError(f"reorder: a name is given twice in {', '.join(names)}")
    front = [find(model, name, "reorder") for name in names]
    rest = list(values)
    for value in front:
        rest.remove(value)
    return [*front, *rest]
