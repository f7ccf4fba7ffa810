"""The pipeline `streamline`: scales and offsets of quantised networks move into thresholds."""

from __future__ import annotations

import functools

from tiered.pipeline.fixpoint import Fixpoint
from tiered.pipeline.sequential import Sequential


@functools.cache
def streamline_pipeline() -> Sequential:
    """Return the pipeline that leaves products of integers, and thresholds between them.

    It ends: a scale or an offset moves towards the outputs only, and never past another one.
    """
    algebra = (
        "fold_constant",
        "eliminate_identity",
        "eliminate_nop_arithmetic",
        "eliminate_idempotent",
        "group_constants",
        # Fewer elements first: one number moves past more operators.
        "unbroadcast",
        "factorize",
    )
    moves = (
        "sink_affine_past_move",
        "sink_affine_past_split",
        "sink_affine_past_concat",
        "sink_scale_past_maximum",
        "sink_scale_past_product",
        "sink_offset_past_product",
        "fuse_affine_into_threshold",
        "fuse_affine_into_comparison",
    )
    return Sequential(
        [
            "infer_shapes",
            "simplify_inference",
            # Scales and offsets as operators of their own.
            "replace_bn_with_mul_add",
            "decompose_gemm",
            # One by one, before constants are merged: so their rounding stays.
            Fixpoint(
                [
                    "eliminate_identity",
                    "eliminate_nop_transpose",
                    "sink_affine_past_move",
                    "fuse_affine_into_threshold",
                    "fuse_affine_into_comparison",
                ]
            ),
            Fixpoint(
                [
                    Fixpoint([*algebra, *moves]),
                    # Factors that stay, because an axis of theirs is summed over.
                    "forward_fold_scale_axis",
                ]
            ),
            # When no step is left that changes them.
            "round_thresholds",
            "eliminate_duplicate_initializer",
            "eliminate_deadend",
            "eliminate_unused_initializer",
        ],
        name="streamline",
        opt_ins="wanted",
    )
