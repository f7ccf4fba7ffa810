"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.compat.tvm.constructors",
        "tiered.compat.tvm.contexts",
        "tiered.compat.tvm.newer_passes",
        "tiered.compat.tvm.op_attributes",
    )
