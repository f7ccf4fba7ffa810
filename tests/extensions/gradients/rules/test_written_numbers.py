"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.extensions.gradients.rules.activation_gradients",
        "tiered.extensions.gradients.rules.control_flow_gradients",
        "tiered.extensions.gradients.rules.elementwise_gradients",
        "tiered.extensions.gradients.rules.product_gradients",
        "tiered.extensions.gradients.rules.recurrent_gradients",
        "tiered.extensions.gradients.rules.reduction_gradients",
    )
