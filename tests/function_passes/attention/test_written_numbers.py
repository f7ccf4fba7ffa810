"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.attention.eliminate_key_bias",
        "tiered.function_passes.attention.fuse_attention",
        "tiered.function_passes.attention.fuse_consecutive_mask",
        "tiered.function_passes.attention.fuse_group_query_attention",
        "tiered.function_passes.attention.fuse_multi_head_attention",
        "tiered.function_passes.attention.fuse_past_into_attention",
        "tiered.function_passes.attention.fuse_qkv_into_attention",
        "tiered.function_passes.attention.fuse_rotary_embedding",
        "tiered.function_passes.attention.fuse_value_bias",
        "tiered.function_passes.attention.pre_scale",
    )
