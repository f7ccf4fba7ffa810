"""Dropout(x) that drops nothing  =>  x; on demand, norms  =>  elementary operators"""

from collections.abc import Mapping
from typing import Final

from tiered import Graph, Node, PassContext, Skip, function_pass

_NORMS: Final[Mapping[str, str]] = {
    "BatchNormalization": "replace_bn_with_mul_add",
    "GroupNormalization": "lower_groupnorm",
    "InstanceNormalization": "lower_instancenorm",
    "LayerNormalization": "lower_layernorm",
    "LpNormalization": "lower_lpnormalization",
    "MeanVarianceNormalization": "lower_mean_variance",
    "RMSNormalization": "lower_rmsnorm",
}
"""The passes whose rules expand the norms."""


@function_pass(opt_level=0, matches=("Dropout", *_NORMS), numerics_option="expand_norms")
def simplify_inference(graph: Graph, ctx: PassContext, *, expand_norms: bool = False) -> None:
    """Drop what only training needs: a Dropout outside of it, or one with the ratio 0.

    Args:
        expand_norms: also write normalizations by elementary operators, from level 3 on; passes
            that fuse norms would fuse them again.
    """
    for node in graph.nodes_of("Dropout"):
        reason = _why_kept(node)
        if reason is not None:
            ctx.skip(node, reason)
        else:
            with graph.rewrite("Dropout(x) => x", node):
                graph.replace(node, (node.inputs[0],))
    if not expand_norms:
        return
    from tiered import legalize_by  # with its sources, which few runs need

    for op_type, name in _NORMS.items():
        for node in graph.nodes_of(op_type):
            declined: Skip | None = None
            with graph.rewrite(f"{op_type}(x) => elementary operators", node):
                declined = legalize_by(node, name)
            if declined is not None:
                ctx.skip(node, declined)


def _why_kept(node: Node) -> Skip | None:
    """Return why a Dropout must stay; None if it returns its input."""
    if node.has_references:
        return Skip("{}", node.parameter_reason)
    if node.used_outputs.keys() - {0}:
        return Skip("the mask is used")
    if node.version < 7:
        return None if node.attr("is_test") == 1 else Skip("is_test is 0")
    training, ratio = node.operand("training_mode"), node.operand("ratio")
    if training is None:
        return None
    if ratio is not None and ratio.const is not None and not ratio.const.any():
        return None
    if training.const is None:
        return Skip("training_mode is not a constant")
    return Skip("it is in training mode") if training.const.any() else None
