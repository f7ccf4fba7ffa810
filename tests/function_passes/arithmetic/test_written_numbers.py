"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.arithmetic.canonicalize_ops",
        "tiered.function_passes.arithmetic.eliminate_idempotent",
        "tiered.function_passes.arithmetic.eliminate_nop_arithmetic",
        "tiered.function_passes.arithmetic.eliminate_nop_variadic",
        "tiered.function_passes.arithmetic.eliminate_same_operands",
        "tiered.function_passes.arithmetic.eliminate_where",
        "tiered.function_passes.arithmetic.eliminate_zero_addend",
        "tiered.function_passes.arithmetic.fuse_consecutive_add",
        "tiered.function_passes.arithmetic.fuse_consecutive_clip",
        "tiered.function_passes.arithmetic.fuse_consecutive_minmax",
        "tiered.function_passes.arithmetic.fuse_consecutive_scale",
        "tiered.function_passes.arithmetic.fuse_minmax_into_clip",
        "tiered.function_passes.arithmetic.fuse_neg",
        "tiered.function_passes.arithmetic.fuse_neg_into_sub",
        "tiered.function_passes.arithmetic.fuse_not_into_where",
        "tiered.function_passes.arithmetic.fuse_reciprocal_into_div",
        "tiered.function_passes.arithmetic.group_constants",
        "tiered.function_passes.arithmetic.lazy_gradient_init",
        "tiered.function_passes.arithmetic.replace_clip_empty_inputs",
        "tiered.function_passes.arithmetic.replace_div_with_mul",
        "tiered.function_passes.arithmetic.replace_div_with_reciprocal",
        "tiered.function_passes.arithmetic.replace_pow",
        "tiered.function_passes.arithmetic.replace_pow_with_roots",
        "tiered.function_passes.arithmetic.replace_where_mask",
    )
