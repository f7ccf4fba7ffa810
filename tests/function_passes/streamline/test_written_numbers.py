"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.streamline.factorize",
        "tiered.function_passes.streamline.fuse_affine_into_comparison",
        "tiered.function_passes.streamline.fuse_affine_into_threshold",
        "tiered.function_passes.streamline.round_thresholds",
        "tiered.function_passes.streamline.sink_affine_past_concat",
        "tiered.function_passes.streamline.sink_affine_past_move",
        "tiered.function_passes.streamline.sink_affine_past_split",
        "tiered.function_passes.streamline.sink_offset_past_product",
        "tiered.function_passes.streamline.sink_scale_past_maximum",
        "tiered.function_passes.streamline.sink_scale_past_product",
        "tiered.function_passes.streamline.unbroadcast",
    )
