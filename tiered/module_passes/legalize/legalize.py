"""An operator that the target refuses  =>  operators that it takes"""

from typing import Literal

from tiered import Model, Numerics, PassContext, module_pass


@module_pass(
    opt_level=1,
    # ONNX's bodies of operators have branches for attributes and shapes.
    followed_by=(
        "replace_castlike_with_cast",
        "trace_folding",
        "fold_constant",
        "eliminate_nop_if",
        "trace_folding",
        "eliminate_identity",
        "fold_constant",
        "eliminate_unused_initializer",
        "remove_unused_functions",
    ),
    touches=("*",),
    numerics_option="numerics",
)
def legalize(
    model: Model,
    ctx: PassContext,
    *,
    numerics: Literal["exact", "reassociating", "approximate"] = "exact",
    maps: tuple[str, ...] = ("default",),
    leave: tuple[str, ...] = (),
) -> None:
    """Replace each node that the target refuses by nodes that it takes, or leave it as it is.

    In this order: the operator that the target's own `[substitute]` table names; registered
    legalizations, which are rules declared with `legalizes=`; the function body that ONNX defines
    the operator by. New nodes that the target refuses are legalized in turn. Without a backend
    there is nothing to do but to check the arguments.

    Args:
        numerics: the loosest class of a legalization; with `reassociating` the pass runs from
            level 3, with `approximate` from level 4.
        maps: the maps of registered legalizations to use.
        leave: operators that stay as they are: Softmax, com.microsoft::Gelu.

    Raises:
        UsageError: no legalization is registered in one of the maps, or there is no such operator.
    """
    if ctx.names_backend:
        from tiered.analysis.legalization.legalization_search import legalize_nodes

        legalize_nodes(
            model, ctx.backend, ctx.skip, numerics=Numerics(numerics), maps=maps, leave=leave
        )
        return
    # Few runs name others, or operators, and check them.
    if maps != ("default",):
        from tiered.analysis.legalization.legalization_sources import check_maps

        check_maps(maps)
    for name in leave:
        from tiered.targets.shared_rules import check_operator

        check_operator(name, ())
