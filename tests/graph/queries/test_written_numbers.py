"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.graph.queries.call_graph",
        "tiered.graph.queries.equal_tensors",
        "tiered.graph.queries.fingerprint",
        "tiered.graph.queries.formals",
        "tiered.graph.queries.long_lists",
        "tiered.graph.queries.onnx_checker",
        "tiered.graph.queries.onnx_errors",
        "tiered.graph.queries.structural_hash",
    )
