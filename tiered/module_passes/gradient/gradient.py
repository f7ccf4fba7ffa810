"""A model with outputs y  =>  the same model, and outputs grad/x = dy/dx"""

from typing import Literal

from tiered import (
    Model,
    PassContext,
    Skip,
    UsageError,
    Value,
    add_gradients,
    float_values,
    gradient_names,
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
    seed: Literal["none", "ones", "input"] = "none",
    stop_at: tuple[str, ...] = (),
    mode: Literal["first_order", "higher_order"] = "first_order",
) -> Skip | None:
    """Append the gradients of outputs with respect to inputs and weights: TVM's gradient.

    The nodes and outputs of the model stay. The backward pass is made of standard operators. A Loop
    or Scan gets further outputs: its states at the start of each iteration. Of a gradient `grad/x`
    the outputs are `grad/grad/...`: a Hessian-vector product is `of=grad/x` with `seed=input`.

    Args:
        of: the values that are differentiated; the only float output by default. Several are
            added up, each times its seed.
        with_respect_to: inputs and initializers, with wildcards; by default all float inputs.
        seed: `none`: each value of `of` is a single number. `ones`: its elements are added up.
            `input`: each is weighed by an input `seed/<name>`: a vector-Jacobian product.
        stop_at: labels of nodes and names of values that count as constants.
        mode: `higher_order` is an error if a node of the backward pass has no gradient itself.

    Raises:
        UsageError: there is no such value, or one is not floating-point, or not a single number.
        NoGradient: a node between has no gradient.
    """
    patterns = with_respect_to or ("*",)
    targets = float_values(model, patterns, "gradient", weights=bool(with_respect_to))
    values = [tensor_named(model, name, "gradient") for name in of] or [_only_output(model)]
    made = {value.name for value in model.main.outputs}
    if made.issuperset(gradient_names(values, targets)):
        return Skip("the gradients are outputs")
    add_gradients(
        model,
        values,
        targets,
        seed=seed,
        stop_at=stop_at,
        again=mode == "higher_order",
    )
    return None


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
