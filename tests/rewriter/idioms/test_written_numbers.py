"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.rewriter.idioms.attention",
        "tiered.rewriter.idioms.constant_pairs",
        "tiered.rewriter.idioms.dtype_ranges",
        "tiered.rewriter.idioms.polynomials",
        "tiered.rewriter.idioms.qonnx_bodies",
        "tiered.rewriter.idioms.quantized_tensors",
        "tiered.rewriter.idioms.rotary",
        "tiered.rewriter.idioms.scale",
        "tiered.rewriter.idioms.selection",
        "tiered.rewriter.idioms.signs",
        "tiered.rewriter.idioms.windows",
    )
