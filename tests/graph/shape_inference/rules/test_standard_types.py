"""The type rules agree with onnx's own inference, and decline what they cannot infer."""

import re

import onnx
import pytest

from tiered.graph import Model
from tiered.graph.core.types import Shape, TensorType
from tiered.graph.shape_inference.infer import infer_outputs, inferred_types
from tiered.graph.shape_inference.onnx_inference import onnx_types
from tiered.graph.shape_inference.rules.standard_types import broadcast
from tiered.graph.shape_inference.symbolic_dims import Dims, size_of_dim

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


KINDS: dict[str, str | None] = {
    "Max(v)": "float[6]",
    "Max(r, v, v)": "float[N,6]",
    "Add(h, v)": "float",
    "Less(h, v)": "bool",
    "Shape(h)": "int64[?]",
    "Shape<end=2>(x)": "int64[2]",
    "Shape<start=1>(x)": "int64[3]",
    "NonZero(r)": "int64[2,?]",
    "NonZero(f)": "int64[?,?]",
    "NonZero(h)": "int64[?,?]",
    "Constant<value_ints=[1,2]>()": "int64[2]",
    "QuantizeLinear(r, f)": None,
    "QuantizeLinear<output_dtype=2>(r, f, zero)": None,
    "DequantizeLinear<output_dtype=1>(q, f)": None,
    "DequantizeLinear(q, f)": "float[4,6]",
    "Transpose(h)": None,
    "Unsqueeze(v, same)": None,
    "Unsqueeze(v, a02)": "float[1,6,1]",
    "Unsqueeze(v, grid)": None,
    "Unsqueeze(v, some)": None,
    "Unsqueeze(v, two)": None,
    "Squeeze(r)": None,
    "Squeeze(r, none)": "float",
    "Squeeze(ones, back)": "float[1,1,8]",
    "ReduceSum<noop_with_empty_axes=1>(x)": None,
    "ReduceSum<noop_with_empty_axes=1>(x, none)": None,
    "ReduceSum<keepdims=0>(x, none)": "float[]",
    "ReduceSum<noop_with_empty_axes=1, keepdims=0>(x, a02)": "float[3,8]",
    "ReduceSum(h)": None,
    "Gather(h, two)": None,
    "Concat<axis=0>(v)": "float[6]",
    "Concat<axis=1>(r, other)": "float[N,12]",
    "Concat<axis=1>(other, r)": "float[M,12]",
    "Concat<axis=1>(r, third)": "float[4,12]",
    "Concat<axis=0>(r, other)": "float[=M+N,6]",
    "Concat<axis=0>(q, wide)": None,
    "Concat<axis=0>(r, h)": None,
    "Flatten<axis=-1>(cube)": "float[6,4]",
    "Flatten<axis=3>(cube)": "float[24,1]",
    "Flatten<axis=4>(cube)": None,
    "Flatten<axis=-4>(cube)": None,
    "Flatten(x)": "float[N,192]",
    "MatMul(v, r)": "float[6]",
    "MatMul(v, columns)": "float[4]",
    "MatMul(v, cube)": None,
    "MatMul(v, rows)": "float[M]",
    "MatMul(r, columns)": "float[N,4]",
    "MatMul(cube, columns)": "float[2,3,4]",
    "MatMul(eight, x)": "float[N,3,8,8]",
    "Gemm(r, r)": "float[N,6]",
    "Gemm(third, third)": None,
    "Gemm<transA=1>(r, other)": "float[6,6]",
    "Gemm(r, columns)": "float[N,4]",
    "Gemm<transB=1>(r, third)": "float[N,4]",
}


def test_the_types_that_rules_infer_or_leave_to_onnx() -> None:
    header = (
        "(float[N,3,8,8] x, float[N,6] r, float[M,6] other, float[4,6] third, float[6,M] rows,"
        " float[K,4] columns, float[6] v, float[2,3,4] cube, float[8,8] eight, float[1,1,8,1] ones,"
        " float f, uint8[4,6] q, uint8[4,5] wide, uint8 zero, int64[1] some, int64[R] t)"
        " => (float[N,6] out) <int64[2] same = {1,1}, int64[2] a02 = {0,2}, int64[1] two = {2},"
        " int64[2,1] grid = {0,1}, int64[1] back = {-1}, int64[0] none = {}>"
    )
    for call, expected in KINDS.items():
        text = f"{header} {{ h = Reshape(x, t) y = {call} out = Neg(r) }}"
        ruled = inferred_types(parsed_model(text, opset=23).main.nodes[1])
        found = None if ruled is None else re.sub(r"unk__[.\d]+", "?", str(ruled.types[0]))
        assert found == expected, call


SPLITS: dict[str, list[str] | None] = {
    "Split<axis=1, num_outputs=2>(r)": ["float[N,3]", "float[N,3]"],
    "Split<axis=1, num_outputs=2>(x)": None,
    "Split<axis=0, num_outputs=2>(r)": None,
    "Split<axis=1>(x, a12)": ["float[N,1,8,8]", "float[N,2,8,8]"],
    "Split<axis=0>(r, a12)": ["float[1,6]", "float[2,6]"],
    "Split<axis=1>(r, a12)": None,
    "Split<axis=1>(r, a123)": None,
    "Split<axis=1>(r, some)": None,
}


def test_the_parts_of_a_split_have_known_sizes() -> None:
    header = (
        "(float[N,3,8,8] x, float[N,6] r, int64[2] some) => (float[N,6] out)"
        " <int64[2] a12 = {1,2}, int64[3] a123 = {1,2,3}>"
    )
    for call, expected in SPLITS.items():
        text = f"{header} {{ a, b = {call} out = Neg(r) }}"
        ruled = inferred_types(parsed_model(text, opset=21).main.nodes[0])
        assert (None if ruled is None else list(map(str, ruled.types))) == expected, call
    text = f"{header} {{ a, b = Split<axis=1, split=[2,4]>(r) out = Neg(r) }}"
    ruled = inferred_types(parsed_model(text, opset=11).main.nodes[0])
    assert ruled is not None
    assert list(map(str, ruled.types)) == ["float[N,2]", "float[N,4]"]


BROADCAST: list[tuple[list[Shape | None], Shape | None]] = [
    ([("N",), ("N",), (1,)], ("N",)),
    ([("N",), ("M",), (4,)], (4,)),
    ([("N",), (4,), ("M",)], (4,)),
    ([("N",), ("M",), (1,)], (None,)),
    ([("N",), ("M",), ("N",)], (None,)),
    ([("N",), (0,)], (0,)),
    ([(None,), ("N",)], (None,)),
    ([("N",), (None,)], (None,)),
    ([(None,), (3,)], (3,)),
    ([(1,), (1, 1)], (1, 1)),
    ([(2, 3), (3,), ()], (2, 3)),
    ([None, (3,)], None),
    ([None, None], None),
]


def test_shapes_broadcast_dim_by_dim() -> None:
    for shapes, expected in BROADCAST:
        assert broadcast(Dims(), shapes) == expected, shapes
    with pytest.raises(ValueError, match="the dims do not broadcast"):
        broadcast(Dims(), [(2,), (3,)])
    dims = Dims()
    least = dims.dim(dims.capped(size_of_dim("S"), 64))
    assert broadcast(dims, [(least,), ("S",)]) == ("S",)
    assert broadcast(dims, [("S",), (least,)]) == ("S",)


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
