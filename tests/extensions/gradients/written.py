"""The new nodes of a gradient as one expression, for tests that hold it as a whole."""

from tests.small import parsed
from tests.written import Writer
from tiered import add_gradients
from tiered.extensions.gradients import NoGradient
from tiered.graph import Value


def written(value: Value | None, first: int) -> str:
    """Return a value as calls of operators; what older nodes compute is a name.

    Args:
        value: the value.
        first: the serial number before the new nodes.
    """
    return Writer(first)(value)


def adjoints(text: str, opset: int = 21) -> list[str]:
    """Return the gradients of the float inputs of a model, a line each, or why there is none."""
    model = parsed(text, opset=opset)
    graph = model.main
    of, targets = (
        [value for value in values if value.is_float] for values in (graph.outputs, graph.inputs)
    )
    first = model.peek_serial() - 1
    try:
        found = add_gradients(model, of, targets, seed="input").outputs
    except NoGradient as error:
        return [str(error)]
    made = [value.producer.inputs[0] for value in found if value.producer]
    write = Writer(first)
    return [f"{value.name}: {write(grad)}" for value, grad in zip(targets, made, strict=True)]
