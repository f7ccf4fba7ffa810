"""Data movement by numpy gives the bits of onnxruntime, and the rest is left to it."""

import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, Value
from tiered.runtime.fold import node_evaluation as evaluation, numpy_moves
from tiered.runtime.fold.numpy_moves import moved
from tiered.support.errors import RuntimeFailure
from tiered.testing import parse

ODD = np.array([-0.0, np.nan, np.inf, -np.nan, 1e-42, 3], np.float32).reshape(2, 1, 3)

HEAD = (
    "(float x) => (float y) <float[2,1,3] w = {1,2,3,4,5,6}, int64[4] n = {-1, 0, 255, 256}, "
    "bool[2] b = {0, 1}, float[2,1,3] v = {1,2,3,4,5,6}, float[0,3] none = {}, "
    "int64[1] zero = {0}, int64[1] one = {1}, int64[0] empty = {}, int64[2] flat = {0,-1}, "
    "float16[2] h = {1,2}, bool[1] t = {1}, "
    "int64[2] outer = {0,-1}, int64[3] wide = {2,4,1}, int64[2] wrong = {3,-2}> { y = Neg(x) "
)

MOVES = [
    "r = Identity(w)",
    "r = Transpose(w)",
    "r = Transpose<perm=[1,2,0]>(w)",
    "r = Reshape(w, flat)",
    "r = Reshape<allowzero=1>(none, zero)",
    "r = Flatten<axis=2>(w)",
    "r = Flatten<axis=-1>(w)",
    "r = Squeeze(w)",
    "r = Squeeze(w, one)",
    "r = Unsqueeze(w, outer)",
    "r = Expand(w, one)",
    "r = Expand(w, two)",
    "r = Concat<axis=1>(w, v, w)",
    "r = Concat<axis=-1>(w, v)",
    "r = Cast<to=2>(n)",
    "r = Cast<to=9>(n)",
    "r = Cast<to=1>(n)",
    "r = Cast<to=11>(b)",
    "r = Cast<to=9>(w)",
    "c = Cast<to=9>(w)  r = Where(c, w, v)",
    "r = ConstantOfShape(wide)",
    "r = ConstantOfShape<value = int64[1] {7}>(empty)",
    "a = Transpose<perm=[2,1,0]>(w)  r = Reshape(a, flat)",
    "g = Identity(v)  r = Transpose(g)",
    "r = Squeeze(w, )",
    "r = Flatten<axis=0>(w)",
]

LEFT = [
    "r = Add(w, v)",  # no movement
    "a = Neg(w)  r = Transpose(a)",  # of what onnxruntime computes
    "r = Cast<to=7>(w)",  # rounds
    "r = Cast<to=10>(w)",  # 16 bits
    "r = Squeeze(w, empty)",  # numpy removes no dim, onnxruntime all of size 1
    "r = Reshape(w, wrong)",  # numpy takes -2 for -1
    "r = Reshape(w, wide)",  # 8 elements of 6
    "r = Transpose<perm=[-1,0,1]>(w)",  # numpy counts from the end
    "r = Transpose<perm=[0,0,1]>(w)",
    "r = Flatten<axis=4>(w)",
    "r = Unsqueeze(w, empty)",
    "r = Concat<axis=3>(w, v)",
    "r = Flatten<axis=-4>(w)",
    "r = Cast<to=9>(h)",  # 16 bits
    "r = Where(w, w, v)",  # no condition
    "r = Where(t, w, n)",  # of two dtypes
    "a, r = Split<axis=0, num_outputs=2>(w)",
    "r = Concat<axis=1>(w, , v)",  # an absent operand
]


def model(text: str, opset: int = 18) -> onnx.ModelProto:
    head = HEAD.replace("int64[0] empty", "int64[3] two = {2,4,3}, int64[0] empty")
    proto = parse(f"{head}{text} }}", opset=opset)
    for tensor in proto.graph.initializer:
        if tensor.name == "w":
            tensor.CopyFrom(numpy_helper.from_array(ODD, "w"))
    return proto


def value(text: str, opset: int = 18) -> Value:
    """Return the value `r`."""
    return Model.from_proto(model(text, opset)).main.values["r"]


def by_numpy(wanted: Value) -> np.ndarray[Any, Any] | None:
    return moved([wanted], evaluation.ancestors([wanted])[0]).get(wanted)


def fail(value: Value, error: RuntimeFailure) -> None:
    raise error


@pytest.mark.parametrize("text", MOVES)
def test_the_bits_are_those_of_onnxruntime(text: str) -> None:
    wanted = value(text)
    found = by_numpy(wanted)
    assert found is not None
    (expected,) = evaluation._computed([wanted], fail).values()
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("text", LEFT)
def test_what_is_left_to_onnxruntime(text: str) -> None:
    assert by_numpy(value(text)) is None


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("r = Squeeze<axes=[1]>(w)", 11),
        ("r = Unsqueeze<axes=[0,4]>(w)", 11),
    ],
)
def test_attributes_of_old_opsets_count(text: str, opset: int) -> None:
    found = by_numpy(value(text, opset))
    assert found is not None
    assert found.tobytes() == ODD.tobytes()


def test_the_result_is_not_a_part_of_the_operand() -> None:
    found = by_numpy(value("r = Identity(w)"))
    assert found is not None
    assert found.flags.owndata
    assert found.flags.writeable


def test_a_constant_of_too_few_bytes_is_left_to_onnxruntime() -> None:
    proto = model("r = Transpose(w)")
    for tensor in proto.graph.initializer:
        if tensor.name == "w":
            tensor.raw_data = b"short"
    assert by_numpy(Model.from_proto(proto).main.values["r"]) is None


def test_sparse_constants_are_left_to_onnxruntime() -> None:
    proto = model("r = Transpose(s)")
    values = numpy_helper.from_array(np.array([5], np.float32), "s")
    indices = numpy_helper.from_array(np.array([1]))
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2]))
    assert by_numpy(Model.from_proto(proto).main.values["r"]) is None


def test_a_parameter_of_a_function_is_not_known() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[2] x) => (float[2] y) { y = f.F<axis = 0>(x) }
        <domain: "f", opset_import: ["" : 21]> F <axis> (v) => (r) {
            c = Constant<value = float[2] {1,2}>()  r = Flatten<axis : int = @axis>(c) }"""
    (function,) = Model.from_proto(onnx.parser.parse_model(text)).functions
    assert by_numpy(function.values["r"]) is None


def test_a_model_with_transposed_weights_needs_no_runtime() -> None:
    script = (
        "import sys, tiered; from tiered.testing import parse\n"
        "model = parse('(float[N,2] x) => (float[N,3] y) <float[3,2] w = {1,2,3,4,5,6}> "
        "{ t = Transpose(w)  y = MatMul(x, t) }')\n"
        "result = tiered.optimize(model)\n"
        "assert len(result.graph.node) == 1, result\n"
        "assert 'onnxruntime' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


W = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
NONE, TWO = np.zeros(0, np.int64), np.array([2, 0], np.int64)


@pytest.mark.parametrize(
    ("call", "operands", "shape"),
    [
        ("Transpose<perm = [-1,0,1]>(a)", [W], None),
        ("Transpose<perm = [1,0,2]>(a)", [W], (1, 2, 3)),
        ("Reshape(a, b)", [W, np.array([3, -2])], None),
        ("Reshape(a, b)", [W, np.array([3, -1])], (3, 2)),
        ("Reshape(a, b)", [W[:1, :, :1], NONE], ()),
        ("Reshape(a, b)", [W, np.array([0, 3])], (2, 3)),
        ("Flatten<axis = 4>(a)", [W], None),
        ("Flatten<axis = -4>(a)", [W], None),
        ("Flatten<axis = 3>(a)", [W], (6, 1)),
        ("Flatten<axis = -3>(a)", [W], (1, 6)),
        ("Flatten<axis = -1>(a)", [W], (2, 3)),
        ("Squeeze(a, b)", [W, None], (2, 3)),
        ("Squeeze(a)", [W], (2, 3)),
        ("Squeeze(a, b)", [W, NONE], None),
        ("Unsqueeze(a, b)", [W, TWO], (1, 2, 1, 1, 3)),
        ("Unsqueeze(a, b)", [W, NONE], None),
        ("Where(a, b, c)", [W, W, W], None),
        ("Where(a, b, c)", [W > 1, W, W.astype(np.float64)], None),
        ("Where(a, b, c)", [W > 1, W, W[:1]], (2, 1, 3)),
        ("Identity(a)", [None], None),
        ("Concat<axis = 1>(a, b)", [W, W], (2, 2, 3)),
        ("Concat<axis = 1>(a, b)", [W, W.astype(np.int32)], None),
    ],
)  # fmt: skip
def test_a_rule_moves_its_operands_or_leaves_them(
    call: str, operands: list[Any], shape: tuple[int, ...] | None
) -> None:
    text = f"(float[?] a, float[?] b, float[?] c) => (float[?] y) {{ y = {call} }}"
    (node,) = Model.from_proto(parse(text)).main.nodes
    rule = numpy_moves.MOVES.of(node)
    assert rule is not None
    if shape is None:
        with pytest.raises((ValueError, TypeError)):
            rule(node, operands)
    else:
        assert rule(node, operands).shape == shape
