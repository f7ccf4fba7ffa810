"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.lower.lower_conv",
        "tiered.function_passes.lower.lower_dequantize",
        "tiered.function_passes.lower.lower_global_pool",
        "tiered.function_passes.lower.lower_groupnorm",
        "tiered.function_passes.lower.lower_instancenorm",
        "tiered.function_passes.lower.lower_layernorm",
        "tiered.function_passes.lower.lower_logsumexp",
        "tiered.function_passes.lower.lower_lpnormalization",
        "tiered.function_passes.lower.lower_mean_variance",
        "tiered.function_passes.lower.lower_pooling",
        "tiered.function_passes.lower.lower_qdq_pair",
        "tiered.function_passes.lower.lower_quantize",
        "tiered.function_passes.lower.lower_quantized_constant",
        "tiered.function_passes.lower.lower_rmsnorm",
        "tiered.function_passes.lower.lower_softplus",
    )
