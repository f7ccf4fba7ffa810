"""The default pipeline: which passes, in which order, and why there.

The order is a decision, so it is written down: one tuple, one why per line. A line is pipeline text
without globs. Each pass runs from its own level on; opt-in passes are parked where they would run,
until a context requires them.
"""

from __future__ import annotations

import functools

from tiered.pipeline.sequential import Sequential

DEFAULT: tuple[str, ...] = (
    # Parked: makes overridable initializers constants, which all that follows can then use.
    "remove_initializer_from_input",
    # Nearly every guard asks for dtypes and shapes.
    "infer_shapes",
    # What only training needs goes first: a Dropout hides what stands on both sides of it.
    "simplify_inference",
    "eliminate_identity",
    # Nothing later need look at what is dead already.
    "eliminate_deadend",
    # One form of constant, and each of them once, before anything compares operands.
    "extract_constant_to_initializer",
    "eliminate_duplicate_initializer",
    # Each of these makes work for the others; folding last, because it sees what they left.
    "fix("
    "eliminate_nop_cast,fuse_consecutive_cast,"
    "eliminate_nop_reshape,eliminate_nop_expand,eliminate_nop_pad,fuse_consecutive_reshape,"
    "eliminate_nop_transpose,fuse_consecutive_transpose,"
    "trace_folding,fold_constant,eliminate_identity,infer_shapes)",
    # After folding, when equal operands are one value; before fusion, which it makes match more.
    "eliminate_common_subexpr",
    "fuse_bn_into_conv",
    # What the passes above made: constants that equal others, and ends that nothing reads.
    "eliminate_duplicate_initializer",
    "eliminate_deadend",
    "eliminate_unused_initializer",
    # Last: what leaves this pipeline is valid, or the error says which promise was broken.
    "final_check",
)


@functools.cache
def default_pipeline() -> Sequential:
    """Return the default pipeline, opt-ins parked; edits make new ones.

    Raises:
        PassNotFoundError: a line names a pass that does not exist.
    """
    return Sequential(DEFAULT, name="default", opt_ins="parked")
