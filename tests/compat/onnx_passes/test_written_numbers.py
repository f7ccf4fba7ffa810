"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.compat.onnx_passes.groups",
        "tiered.compat.onnx_passes.kinds",
        "tiered.compat.onnx_passes.rules",
    )
