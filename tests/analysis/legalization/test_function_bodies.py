"""The function bodies of ONNX's operators compute what the operators do, on ONNX's own cases."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

from tiered import Model, Skip
from tiered.analysis.legalization.legalization_search import simplify
from tiered.analysis.legalization.legalization_sources import FunctionBody
from tiered.graph.queries.function_body import EXACT_BODIES, has_function_body
from tiered.runtime import run
from tiered.runtime.deviations import NEWEST, installed
from tiered.support.errors import RuntimeFailure
from tiered.support.numerics import Numerics
from tiered.testing import parse

OPERATORS = (
    "AffineGrid", "Attention", "BlackmanWindow", "CausalConvWithState", "Celu",
    "CenterCropPad", "Clip", "DepthToSpace", "DynamicQuantizeLinear", "Elu", "FlexAttention",
    "Gelu", "GreaterOrEqual", "GroupNormalization", "HammingWindow", "HannWindow", "HardSigmoid",
    "HardSwish", "LayerNormalization", "LeakyRelu", "LessOrEqual", "LinearAttention",
    "LogSoftmax",
    "MeanVarianceNormalization", "Mish", "NegativeLogLikelihoodLoss", "PRelu", "RMSNormalization",
    "Range", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
    "RotaryEmbedding", "Selu", "Softmax", "SoftmaxCrossEntropyLoss", "Softplus", "Softsign",
    "SpaceToDepth", "Swish", "ThresholdedRelu",
)  # fmt: skip
"""The operators with a body and a case that onnxruntime runs, as it is or as its body."""

WITHOUT_RESULT = {
    "Bernoulli": "random",
    "CastLike": "ONNX gives no value for the operand of its cases",
    "Relu": "its cases are of opset 14, its body of opset 18",
    "SequenceMap": "it has a body of its own, which ONNX's body calls",
    "Shrink": "its cases are of opset 9, its body of opset 18",
    "SwiGLU": "onnxruntime has no kernels for the opset of its body",
}
"""Operators whose cases give nothing to compare, and why."""


@cache
def all_cases() -> list[TestCase]:
    """Return ONNX's node cases; onnx collects them once in a process, all or those of one name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return list(collect_testcases(None))


def cases_of(operator: str) -> list[TestCase]:
    """Return the cases with one node of an operator."""
    return [
        case
        for case in all_cases()
        if case.model is not None and [node.op_type for node in case.model.graph.node] == [operator]
    ]


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_body_computes_what_the_operator_does(operator: str) -> None:
    tried = [_compare(case, operator) for case in cases_of(operator)]
    if not any(tried) and installed() < NEWEST:
        pytest.skip(f"this onnxruntime is too old for the opset of {operator}")
    assert any(tried), f"onnxruntime ran no case of {operator}"


def _compare(case: TestCase, operator: str) -> bool:
    """Compare one case; return False where onnxruntime lacks a kernel for it, or ONNX a body."""
    assert case.model is not None
    assert case.data_sets is not None
    model = Model.from_proto(case.model)
    (node,) = model.main.nodes
    if node.bodies:
        return False
    assert has_function_body(node)
    declined = FunctionBody(Numerics.EXACT).apply(node)
    if declined is not None:
        assert "no function body" in str(declined)
        return False
    simplify(list(model.main.topological_order()))
    model.check_view(types=True)
    model.check()
    assert not model.main.nodes_of(operator)
    values, _ = case.data_sets[0]
    names = [info.name for info in case.model.graph.input]
    inputs = {name: np.asarray(value) for name, value in zip(names, values, strict=True)}
    try:
        actual = run(model.to_proto(), inputs)
    except RuntimeFailure:
        return False
    try:
        expected = run(case.model, inputs)
    except RuntimeFailure:  # it has no kernel; the case says what the operator computes
        _, results = case.data_sets[0]
        results = [np.asarray(value) for value in results]
        names = [info.name for info in case.model.graph.output]
        expected = dict(zip(names, results, strict=True))
    for name, before in expected.items():
        after = actual[name]
        if name == "qk_matmul_output":
            # The deviation "lowest_number_of_causal_masks" of onnxruntime.
            before[(before == np.finfo(before.dtype).min) & np.isneginf(after)] = -np.inf
        assert after.dtype == before.dtype
        if operator in EXACT_BODIES or before.dtype.kind not in "f":
            np.testing.assert_array_equal(after, before, err_msg=case.name)
        else:
            rtol = 2e-3 if before.dtype == np.float16 else 1e-4
            np.testing.assert_allclose(after, before, rtol=rtol, atol=1e-5, err_msg=case.name)
    return True


def test_every_operator_with_a_body_and_a_case_is_tried() -> None:
    schemas: Any = onnx.defs.get_all_schemas()  # its stub lacks the functions
    with_body = {
        schema.name
        for schema in schemas
        if schema.has_function or schema.has_context_dependent_function
    }
    with_case = {case.model.graph.node[0].op_type for case in all_cases() if case.model}
    assert with_body & with_case - {*OPERATORS, *WITHOUT_RESULT} == set()


def test_dtypes_must_be_known() -> None:
    model = Model.from_proto(
        parse(
            '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '
            "g (float[2] x) => (float[2] y) { a = own.Any(x) y = Clip(a) }"
        )
    )
    (node,) = model.main.nodes_of("Clip")
    assert str(FunctionBody(Numerics.EXACT).apply(node)) == "the dtype of 'a' is unknown"


def test_an_operator_of_another_opset_has_no_body() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Relu(x) }", opset=13))
    (node,) = model.main.nodes
    declined = FunctionBody(Numerics.EXACT).apply(node)
    assert isinstance(declined, Skip)
    assert "no function body of Relu in opset 13" in str(declined)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    ("rows", "sizes"), [((2, 3), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 3), (1, 5))]
)
def test_the_body_of_affine_grid_keeps_a_batch_of_one(
    batch: int, rows: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    theta, size, grid = (
        ",".join(map(str, dims))
        for dims in ((batch, *rows), (batch, 3, *sizes), (batch, *sizes, len(sizes)))
    )
    proto = parse(
        f"(float[{theta}] t) => (float[{grid}] y) <int64[{len(sizes) + 2}] s = {{{size}}}> "
        "{ y = AffineGrid(t, s) }",
        opset=20,
    )
    inputs = {"t": np.random.default_rng(0).standard_normal((batch, *rows)).astype(np.float32)}
    model = Model.from_proto(proto)
    assert FunctionBody(Numerics.REASSOCIATING).apply(model.main.nodes[0]) is None
    model.check()
    expected, found = (run(each, inputs)["y"] for each in (proto, model.to_proto()))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "is_replaced"), [("slope", False), ("slope: float = 0.5", True)]
)
def test_a_parameter_that_a_call_may_leave_out_is_no_attribute_of_a_body(
    parameters: str, is_replaced: bool
) -> None:
    model = Model.from_proto(
        onnx.parser.parse_model(
            f"""<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
            g (float[3] x) => (float[3] y) {{ y = d.f(x) }}
            <domain: "d", opset_import: ["" : 21]>
            f <{parameters}> (z) => (y) {{ y = LeakyRelu<alpha: float = @slope>(z) }}"""
        )
    )
    function = model.function("d", "f")
    assert function is not None
    (node,) = function.nodes_of("LeakyRelu")
    refused = FunctionBody(Numerics.REASSOCIATING).apply(node)
    assert (refused is None) == is_replaced
    if refused is not None:
        assert "'slope', which a call may leave out" in str(refused)
    model.check()
    x = np.array([-2.0, 0.0, 3.0], np.float32)
    expected = np.where(x < 0, x * np.float32(0.5 if is_replaced else 0.01), x)
    assert np.allclose(run(model.to_proto(), {"x": x})["y"], expected)
