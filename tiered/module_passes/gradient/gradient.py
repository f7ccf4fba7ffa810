"""A model with outputs y  =>  the same model, and outputs grad/x = dy/dx"""

from collections.abc import Sequence
from typing import Literal

from tiered import (
    Model,
    Node,
    PassContext,
    Skip,
    UsageError,
    Value,
    add_gradients,
    memory_plan,
    module_pass,
)
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.gradients.differentiate import are_outputs_already, float_values
from tiered.extensions.memory.checkpoints import recompute_forward
from tiered.extensions.memory.liveness import peak_change
from tiered.graph.core.marks import METADATA_SINCE
from tiered.rewriter.idioms.main_tensors import tensor_named


@module_pass(
    opt_level=None, required=("inline", "infer_shapes"), touches=("*",), changes_interface=True
)
def gradient(
    model: Model,
    ctx: PassContext,
    *,
    of: tuple[str, ...] = (),
    with_respect_to: tuple[str, ...] = (),
    seed: Literal["none", "ones", "input"] = "none",
    stop_at: tuple[str, ...] = (),
    higher_order: bool = False,
    recompute: bool = False,
    stay: tuple[str, ...] = (),
    dims: tuple[str, ...] = (),
    default_dim: int = 16,
) -> Skip | None:
    """Append the gradients of outputs with respect to inputs and weights: TVM's gradient.

    The nodes and outputs of the model stay. The backward pass is made of standard operators. A Loop
    or Scan gets further outputs: its states at the start of each iteration. Of a gradient `grad/x`
    the outputs are `grad/grad/...`: a Hessian-vector product is `of=grad/x` with `seed=input`.
    Where a tensor `grad/x` computes something else, the output is `grad/<of>/x`.

    Args:
        of: the values that are differentiated; the only float output by default. Several are
            added up, each times its seed.
        with_respect_to: inputs and initializers, with wildcards; by default all float inputs.
        seed: `none`: each value of `of` is a single number. `ones`: its elements are added up.
            `input`: each is weighed by an input `seed/<name>`: a vector-Jacobian product.
        stop_at: labels of nodes and names of values that count as constants.
        higher_order: an error if a node of the backward pass has no gradient itself.
        recompute: the backward pass computes tensors of the forward pass again, segment by
            segment, where that lowers the peak of memory. The copies are marked, so that no pass
            merges them: the IR version becomes 10 at least.
        stay: tensors and nodes, with wildcards, that are not computed again, nor what comes after
            the last of them; all others are. By default, those with the lowest peak of memory.
        dims: the sizes of dynamic dims for the peak, as `name=size`.
        default_dim: the size of all others.

    Raises:
        UsageError: there is no such value, or one is not floating-point, or not a single number;
            or an entry of `stay` matches nothing.
        NoGradient: a node between has no gradient.
    """
    patterns = with_respect_to or ("*",)
    targets = float_values(model, patterns, "gradient", weights=bool(with_respect_to))
    values = [tensor_named(model, name, "gradient") for name in of] or [_only_output(model)]
    forward = model.main.topological_order()
    sizes = LayoutSizes.parse(dims, default_dim, "gradient", model)
    mark = model.mark()
    made = add_gradients(
        model,
        values,
        targets,
        seed=seed,
        stop_at=stop_at,
        again=higher_order,
    )
    if are_outputs_already(model, made, values, targets):
        model.undo_to(mark)
        return Skip("the gradients are outputs")
    if recompute or stay:
        _recompute(model, ctx, forward, stay, sizes)
    return None


def _recompute(
    model: Model, ctx: PassContext, forward: Sequence[Node], stay: Sequence[str], sizes: LayoutSizes
) -> None:
    """Let the backward pass compute tensors again, and say by how much the peak falls."""
    before = memory_plan(model, dims=sizes.known, default_dim=sizes.default)
    if model.ir_version < METADATA_SINCE:
        model.set_ir_version(METADATA_SINCE)
    done = recompute_forward(model, forward, stay=stay, sizes=sizes)
    for node, reason in done.kept:
        ctx.skip(node, reason)
    if done.copies:
        after = memory_plan(model, dims=sizes.known, default_dim=sizes.default)
        cost = f"nodes added: {done.copies}, multiply-adds: {done.multiply_adds}"
        ctx.remark(f"{peak_change(before, after)}; {cost}")


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
