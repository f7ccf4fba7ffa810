"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.activation.eliminate_addend_before_softmax",
        "tiered.function_passes.activation.fast_exp",
        "tiered.function_passes.activation.fast_softmax",
        "tiered.function_passes.activation.fast_tanh",
        "tiered.function_passes.activation.fuse_bias_gelu",
        "tiered.function_passes.activation.fuse_gelu",
        "tiered.function_passes.activation.fuse_hardsigmoid",
        "tiered.function_passes.activation.fuse_hardswish",
        "tiered.function_passes.activation.fuse_log_softmax",
        "tiered.function_passes.activation.fuse_mish",
        "tiered.function_passes.activation.fuse_quick_gelu",
        "tiered.function_passes.activation.fuse_silu",
        "tiered.function_passes.activation.fuse_softmax",
        "tiered.function_passes.activation.lower_sigmoid",
        "tiered.function_passes.activation.replace_erf_with_erfv2",
        "tiered.function_passes.activation.replace_gelu_with_tanh",
        "tiered.function_passes.activation.replace_sigmoid_with_hardsigmoid",
    )
