"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.numerics.precision.few_bits.codes",
        "tiered.numerics.precision.few_bits.compensation",
        "tiered.numerics.precision.few_bits.exponents",
        "tiered.numerics.precision.few_bits.float8",
        "tiered.numerics.precision.few_bits.readers",
        "tiered.numerics.precision.few_bits.returning",
        "tiered.numerics.precision.few_bits.sampled_operands",
        "tiered.numerics.precision.few_bits.sensitive",
        "tiered.numerics.precision.few_bits.stored",
        "tiered.numerics.precision.few_bits.weights",
    )
