"""The type rules agree with onnx's own inference, and decline what they cannot infer."""

import onnx
import pytest

from tiered.graph import Model
from tiered.graph.core.types import TensorType
from tiered.graph.shape_inference.infer import infer_outputs, inferred_types
from tiered.graph.shape_inference.onnx_inference import onnx_types

HEADER = (
    "(float[N,3,8,8] x, float[N,6] r, float[6,M] s, int64[2,5] i, bool[N,6] b, uint8[4,6] q,"
    " float[?,6] u, float[6] v, float[1,1,8,1] ones) => (float[N,6] out)"
    " <float[4,3,3,3] w = {WEIGHTS}, int64[1] a1 = {1}, int64[2] a2 = {-1,0}, int64[2] halves = {2,4},"
    " int64[4] pads = {1,0,2,0}, float scale = {0.5}, uint8 zero = {3}, int64[2] target = {0,-1},"
    " int64[2] starts = {0,1}, int64[2] ends = {2,5}, int64[2] steps = {1,2}, float f = {2.0},"
    " int64[2] back = {-1,-1}, int64[2] far = {-9,-9}, int64[2] minus = {-1,-2},"
    " int64 five = {5}, int64 one = {1}, int64[2] flat = {0,18}>"
).replace("WEIGHTS", ",".join(["1"] * 108))

AGREE = (
    "Relu(x)", "Clip(x, f)", "Softmax<axis=1>(x)", "LayerNormalization(r, v)", "PRelu(r, v)",
    "IsNaN(r)", "Not(b)", "Add(r, v)", "Add(r, f)", "Mul(x, ones)", "Sub(u, v)", "Pow(r, five)",
    "Max(r, v, f)", "Equal(r, v)", "And(b, b)", "Where(b, r, v)", "Add(u, r)",
    "Cast<to=7>(r)", "CastLike(r, i)", "Shape(x)", "Shape<start=1, end=-1>(x)", "Size(x)",
    "QuantizeLinear(r, scale, zero)", "DequantizeLinear(q, scale, zero)",
    "Transpose(x)", "Transpose<perm=[1,0,3,2]>(x)", "Unsqueeze(r, a2)", "Unsqueeze(r, a1)",
    "Squeeze(ones)", "Squeeze(ones, a1)",
    "ReduceMean(x, a2)", "ReduceMean<keepdims=0>(x, a1)", "ReduceSum(x)",
    "ReduceMax<keepdims=0>(r)", "ArgMax<axis=-1>(r)", "ArgMin<axis=0, keepdims=0>(x)",
    "Gather<axis=1>(r, i)", "Gather(x, five)", "GatherElements(q, i)",
    "Concat<axis=1>(r, r)", "Concat<axis=0>(v, v)", "Flatten(ones)", "Flatten<axis=0>(q)",
    "MatMul(r, s)", "MatMul(v, s)", "MatMul(r, v)", "MatMul(v, v)", "MatMul(x, ones)",
    "Gemm(r, s)", "Gemm<transA=1, transB=1>(s, r)",
    "Conv(x, w)", "Conv<pads=[1,1,1,1], strides=[2,2]>(x, w)", "Conv<dilations=[2,2]>(x, w)",
    'Conv<auto_pad="VALID">(x, w)',
    "MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)", "AveragePool<kernel_shape=[3,3]>(x)",
    "LpPool<kernel_shape=[3,2], strides=[2,1]>(x)",
    "MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(x)",
    "GlobalAveragePool(x)", "Pad(r, pads)", "Pad(q, halves, zero, a1)",
    "Reshape(r, target)", "Reshape(q, flat)", "Expand(f, halves)", "Tile(r, halves)",
    "Slice(q, starts, ends)", "Slice(q, starts, ends, a2)", "Slice(q, starts, ends, a2, steps)",
    "Slice(q, back, far, a2, minus)", "Range(one, five, one)",
)  # fmt: skip

ONNX_IS_ASKED = (
    'Conv<auto_pad="SAME_UPPER">(x, w)',
    "QuantizeLinear<output_dtype=3>(r, scale)",
    "Transpose<perm=[0,0,1,1]>(x)",
    "Add(v, i)",
    "MatMul(r, q)",
    "Gather<axis=7>(r, i)",
    "TopK(r, a1)",
)


def parsed_model(text: str, *, opset: int) -> Model:
    header = f'<ir_version: 10, opset_import: ["" : {opset}]> agraph '
    return Model.from_proto(onnx.parser.parse_model(header + text))


def modelled(call: str) -> Model:
    results = "t, other" if call.startswith("TopK") else "t"
    return parsed_model(f"{HEADER} {{ {results} = {call} out = Relu(r) }}", opset=21)


@pytest.mark.parametrize("call", AGREE)
def test_a_rule_infers_the_type_that_onnx_infers(call: str) -> None:
    node = modelled(call).main.nodes[0]
    ruled, inferred = inferred_types(node), onnx_types(node)[0]
    assert ruled is not None
    assert isinstance(inferred, TensorType)
    kind = ruled.types[0]
    assert isinstance(kind, TensorType)
    assert kind.dtype == inferred.dtype
    assert inferred.shape is not None
    assert kind.shape is not None
    # The rule may know a dim that onnx cannot name, as a product or a sum.
    for own, theirs in zip(kind.shape, inferred.shape, strict=True):
        assert own == theirs or theirs is None


@pytest.mark.parametrize("call", ONNX_IS_ASKED)
def test_onnx_is_asked_where_a_rule_declines(call: str) -> None:
    node = modelled(call).main.nodes[0]
    assert inferred_types(node) is None
    if (inferred := onnx_types(node)) and "TopK" not in call:
        assert infer_outputs(node)[0] == inferred[0]


def test_both_outputs_of_a_split_have_types() -> None:
    text = f"{HEADER} {{ p, q1 = Split<axis=1>(r, halves) out = Relu(r) }}"
    ruled = inferred_types(parsed_model(text, opset=21).main.nodes[0])
    assert ruled is not None
    assert [str(kind) for kind in ruled.types] == ["float[N,2]", "float[N,4]"]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("Squeeze<axes=[0]>(ones)", "float[1,8,1]"),
        ("Unsqueeze<axes=[0,-1]>(v)", "float[1,6,1]"),
        ("ReduceMean<axes=[1], keepdims=0>(r)", "float[N]"),
        ("Pad<pads=[0,1,0,1]>(r)", "float[N,8]"),
    ],
)
def test_rules_read_attributes_of_older_opsets(call: str, kind: str) -> None:
    node = parsed_model(f"{HEADER} {{ t = {call} out = Relu(r) }}", opset=9).main.nodes[0]
    ruled = inferred_types(node)
    assert ruled is not None
    assert str(ruled.types[0]) == kind


def test_an_unknown_dim_gets_one_name_that_consumers_inherit() -> None:
    model = parsed_model(f"{HEADER} {{ t = Add(u, r) k = Neg(t) out = Relu(r) }}", opset=21)
    first, second = (node.output.shape for node in model.main.nodes[:2])
    assert first is not None
    assert isinstance(first[0], str)
    assert first == second
    assert first[0].startswith("unk__")


def test_a_flatten_of_an_unknown_rank_is_a_matrix() -> None:
    text = (
        "(float[N] x, int64[K] s) => (float[A,B] y)"
        " { h = Reshape(x, s)  f = Flatten<axis=-1>(h)  y = Relu(f) }"
    )
    model = parsed_model(text, opset=21)
    assert model.main.nodes[0].output.rank is None
    assert model.main.nodes[1].output.rank == 2


def test_pads_may_follow_from_shapes() -> None:
    """Exporters reverse the pads of PyTorch by nodes."""
    model = Model.from_proto(
        onnx.parser.parse_model(
            """<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] x) => (float[a,b] y) <int64[1] two = {2}> {
            s = Shape(x)  z = Sub(s, s)  p = Concat<axis = 0>(z, two, two)  y = Pad(x, p) }"""
        )
    )
    assert model.main.values["y"].static_shape == (4, 5)
