"""A model with outputs y  =>  the same model, and outputs grad/x = dy/dx"""

from typing import Literal

from tiered import (
    Model,
    PassContext,
    UsageError,
    Value,
    add_gradients,
    float_values,
    module_pass,
)
from tiered.idioms.tensors import tensor_named


@module_pass(
    opt_level=None, required=("inline", "infer_shapes"), acts_on=("*",), changes_interface=True
)
def gradient(
    model: Model,
    ctx: PassContext,
    *,
    of: tuple[str, ...] = (),
    with_respect_to: tuple[str, ...] = (),
    seed: bool = False,
    stop_at: tuple[str, ...] = (),
    mode: Literal["first_order", "higher_order"] = "first_order",
) -> None:
    """Append the gradients of outputs with respect to inputs and weights: TVM's gradient.

    The nodes and outputs of the model stay. The backward pass is made of standard operators.

    Args:
        of: the values that are differentiated; the only float output by default. Several are
            added up, each times its seed.
        with_respect_to: inputs and initializers, with wildcards; by default all float inputs.
        seed: add an input `seed/<name>` for each value of `of`, which may then be of any shape.
        stop_at: labels of nodes and names of values that count as constants.
        mode: `higher_order` is an error if a node of the backward pass has no gradient itself.

    Raises:
        UsageError: there is no such value, or one is not floating-point, or not a single number.
        NoGradient: a node between has no gradient.
    """
    patterns = with_respect_to or ("*",)
    targets = float_values(model, patterns, "gradient", weights=bool(with_respect_to))
    add_gradients(
        model,
        [tensor_named(model, name, "gradient") for name in of] or [_only_output(model)],
        targets,
        seeded=seed,
        stop_at=stop_at,
        again=mode == "higher_order",
    )


def _only_output(model: Model) -> Value:
    """Return the output of a model that has one.

    Raises:
        UsageError: it has several.
    """
    outputs = model.main.outputs
    if len(outputs) != 1:
        names = ", ".join(value.name for value in outputs)
        raise UsageError(f"gradient: of={{...}} chooses among the outputs {names}")
    return outputs[0]
