"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.graph.shape_inference.data_propagation",
        "tiered.graph.shape_inference.infer",
        "tiered.graph.shape_inference.onnx_inference",
    )
