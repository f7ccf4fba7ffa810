"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.module_passes.precision.double_to_float",
        "tiered.module_passes.precision.float_to_bfloat16",
        "tiered.module_passes.precision.float_to_fp8",
        "tiered.module_passes.precision.float_to_half",
        "tiered.module_passes.precision.float_to_mixed",
        "tiered.module_passes.precision.fp8_weight",
        "tiered.module_passes.precision.int64_to_int32",
        "tiered.module_passes.precision.weights_to_int4",
        "tiered.module_passes.precision.weights_to_int8",
    )
