"""Random valid models: no exact level changes an output bit, the interface, or its own result."""

import random

import onnx
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.conformance.fuzz_passes import NotRunnable, faults_of
from tests.conformance.random_graphs import random_model


@settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(st.randoms(use_true_random=False))
def test_no_exact_level_changes_what_a_random_model_computes(source: random.Random) -> None:
    try:
        model, failures = faults_of(source, (2,))
    except NotRunnable:
        assume(False)
    assert not failures, f"{failures}\n{onnx.printer.to_text(model)}"


def test_a_number_names_a_model() -> None:
    for seed in range(20):
        assert random_model(random.Random(seed)) == random_model(random.Random(seed))


def test_random_models_have_bodies_functions_and_all_kinds_of_numbers() -> None:
    operators, dtypes = set(), set()
    for seed in range(150):
        model = random_model(random.Random(seed), 20)
        operators |= {(node.domain, node.op_type) for node in model.graph.node}
        dtypes |= {info.type.tensor_type.elem_type for info in model.graph.input}
    assert {("", "If"), ("", "Loop"), ("local", "F"), ("", "Conv"), ("", "Split")} <= operators
    assert len(operators) > 50
    assert len(dtypes) > 10
