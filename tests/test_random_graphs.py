"""Random valid models: no exact level changes an output bit, the interface, or its own result."""

import random

import onnx
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.conformance.fuzz_passes import NotRunnable, faults_of
from tests.conformance.random_graphs import random_feeds, random_model


@settings(max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
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


def test_random_models_have_all_kinds_of_operators_numbers_and_dims() -> None:
    operators, dtypes, opsets, dims = set(), set(), set(), set()
    for seed in range(400):
        model = random_model(random.Random(seed), 20)
        operators |= {(node.domain, node.op_type) for node in model.graph.node}
        dtypes |= {info.type.tensor_type.elem_type for info in model.graph.input}
        opsets.add(model.opset_import[0].version)
        dims |= {
            dim.WhichOneof("value")
            for info in model.graph.input
            for dim in info.type.tensor_type.shape.dim
        }
    assert {("", "If"), ("", "Loop"), ("", "Scan"), ("local", "F"), ("local", "G")} <= operators
    assert len(operators) > 60
    rare = ("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT4E2M1", "INT4", "UINT4", "STRING")
    assert {getattr(onnx.TensorProto, name) for name in rare} <= dtypes
    assert min(opsets) == 7
    assert dims == {"dim_value", "dim_param", None}


def test_a_default_is_fed_sometimes() -> None:
    seen = set()
    for seed in range(200):
        source = random.Random(seed)
        model = random_model(source, 4)
        defaults = {tensor.name for tensor in model.graph.initializer}
        overridable = defaults & {info.name for info in model.graph.input}
        seen |= {bool(overridable & random_feeds(source, model).keys()) for _ in overridable}
    assert seen == {False, True}
