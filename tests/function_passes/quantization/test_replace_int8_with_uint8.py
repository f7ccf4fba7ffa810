import pytest

from tiered import DataType, Model, optimize
from tiered.targets.known import table_of
from tiered.targets.reading import backend_of
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_int8_with_uint8"
ORT = "onnxruntime_cpu"
HEAD = "(float[N,4] x) => (float[N,4] y)"
SIGNED = "<float s = {0.5}, int8 z = {-3}>"
UNSIGNED = "<float s = {0.5}, uint8 z = {125}>"
PAIR = "q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z)"


@pytest.mark.parametrize("opset", [10, 13, 21])
def test_integers_move_with_their_zero_point(opset: int) -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} {SIGNED} {{ {PAIR} }}",
        f"{HEAD} {UNSIGNED} {{ {PAIR} }}",
        backend=ORT,
        opset=opset,
    )


@pytest.mark.parametrize("dims", ["", "[4]"])
def test_zero_points_that_are_absent_are_written(dims: str) -> None:
    numbers = "0.5,1,2,4" if dims else "0.5"
    scale, zeros = f"float{dims} s = {{{numbers}}}", "128,128,128,128" if dims else "128"
    assert_rewrites(
        PASS,
        f"{HEAD} <{scale}> {{ q = QuantizeLinear<output_dtype=3>(x, s)  y = DequantizeLinear(q, s) }}",
        f"{HEAD} <{scale}, uint8{dims} z = {{{zeros}}}> {{ {PAIR} }}",
        backend=ORT,
    )


def test_every_reader_moves() -> None:
    head = "(float[N,4] x) => (float[N,4] y, float[4,N] w, float[N,4] v)"
    nodes = f"{PAIR} d = DequantizeLinear(q, s, z) w = Transpose(d) v = DequantizeLinear(q, t, u)"
    more = "float t = {0.25}, %s u = {%s}>"
    assert_rewrites(
        PASS,
        f"{head} {SIGNED[:-1]}, {more % ('int8', 4)} {{ {nodes} }}",
        f"{head} {UNSIGNED[:-1]}, {more % ('uint8', 132)} {{ {nodes} }}",
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            f"(float[N,4] x) => (float[N,4] y, int8[N,4] q) {SIGNED} {{ {PAIR} }}",
            "the integers are a graph output",
        ),
        (
            f"(float[N,4] x) => (float[N,4] y, int8[N,4] w) {SIGNED} {{ {PAIR} w = Neg(q) }}",
            "the integers are used as integers",
        ),
        (
            f"(float[N,4] x, int8 z) => (float[N,4] y) <float s = {{0.5}}> {{ {PAIR} }}",
            "a zero point is not constant",
        ),
        (
            "(float[N,4] x, float[K] s) => (float[N,4] y) { q = QuantizeLinear<output_dtype=3>"
            "(x, s)  y = DequantizeLinear(q, s) }",
            "a zero point is not constant",
        ),
    ],
)
def test_integers_that_are_not_data_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_operators_that_move_integers_stay() -> None:
    nodes = (
        "q = QuantizeLinear(x, s, z) a = Transpose<perm=[0,1,3,2]>(q) b = MaxPool<kernel_shape=[2,2], "
        "pads=[1,1,1,1]>(a) c = Reshape(b, n) e, f = Split<axis=0, num_outputs=2>(c) "
        "g = DequantizeLinear(e, s, z) h = DequantizeLinear(f, s, z) y = Concat<axis=0>(g, h)"
    )
    head = "(float[1,2,3,3] x) => (float[32] y)"
    more = "int64[1] n = {-1}>"
    assert_rewrites(
        PASS,
        f"{head} {SIGNED[:-1]}, {more} {{ {nodes} }}",
        f"{head} {UNSIGNED[:-1]}, {more} {{ {nodes} }}",
        backend=ORT,
    )


def test_an_operand_that_is_constant_moves_too() -> None:
    nodes = "d = DequantizeLinear(k, s, z) y = Add(x, d)"
    assert_rewrites(
        PASS,
        f"{HEAD} <float s = {{0.5}}, int8 z = {{-3}}, int8[4] k = {{-128,-1,0,127}}> {{ {nodes} }}",
        f"{HEAD} <float s = {{0.5}}, uint8 z = {{125}}, uint8[4] k = {{0,127,128,255}}> {{ {nodes} }}",
        backend=ORT,
    )


def test_an_operand_that_is_quantised_as_a_constant_moves_too() -> None:
    nodes = "q = QuantizeLinear(k, s, z) d = DequantizeLinear(q, s, z) y = Add(x, d)"
    more = ", float[4] k = {-99,-1,0,99}>"
    assert_rewrites(
        PASS,
        f"{HEAD} {SIGNED[:-1]}{more} {{ {nodes} }}",
        f"{HEAD} {UNSIGNED[:-1]}{more} {{ {nodes} }}",
        backend=ORT,
    )


def test_a_quantised_constant_is_a_weight() -> None:
    text = (
        "(float[N,4] x) => (float[N,1] y) <float s = {0.5}, int8 z = {-3}, "
        "float[4,1] c = {1,2,3,4}> { q = QuantizeLinear(c, s, z) d = DequantizeLinear(q, s, z) "
        "y = MatMul(x, d) }"
    )
    assert_unchanged(PASS, text, backend=ORT, because="a constant is quantised")


def test_a_constant_that_is_a_weight_too_stays() -> None:
    text = (
        "(float[N,4] x) => (float[N,4] y, float[4,4] v) <float s = {0.5}, int8 z = {-3}, "
        "int8[4,4] k = {1,2,3,4, 5,6,7,8, 1,2,3,4, 5,6,7,8}> { d = DequantizeLinear(k, s, z)"
        " e = DequantizeLinear(k, s, z) y = MatMul(x, d) v = Add(e, e) }"
    )
    assert_unchanged(PASS, text, backend=ORT, because="a constant is quantised")


def test_function_parameters_stay() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
      g (float[4,2] x) => (float[4,2] y) { y = local.f<axis=1>(x) }
      <domain: "local", opset_import: ["": 21]>
      f <axis> (x) => (y) {
        s = Constant<value = float[2] {0.5, 1}>() z = Constant<value = int8[2] {0, 3}>()
        q = QuantizeLinear<axis: int = @axis>(x, s, z)
        y = DequantizeLinear<axis: int = @axis>(q, s, z) }"""
    assert_unchanged(PASS, text, backend=ORT, because="is a function parameter")


def test_a_target_with_fast_kernels_for_signed_data_keeps_it() -> None:
    operators = {"QLinearConv, QLinearMatMul": True}
    table = {"api_version": 1, "extends": ORT, "name": "fast", "operators": operators}
    fast = backend_of(table, "fast.toml", table_of)
    assert_unchanged(PASS, f"{HEAD} {SIGNED} {{ {PAIR} }}", backend=fast)


CONV = """(float[1,2,4,4] x) => (float[1,2,4,4] y) <float s = {0.5}, int8 z = {3}, float t = {2.0},
  int8[2,2,1,1] w = {3,-5,1,2}, float r = {0.25}, int8 v = {0}> {
  q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) e = DequantizeLinear(w, r, v)
  c = Conv(d, e) p = QuantizeLinear(c, t, z) y = DequantizeLinear(p, t, z) }"""


def test_a_convolution_gets_data_without_a_sign() -> None:
    """Signed data would be 13 times slower on x86-64."""
    result = optimize(parse(CONV), opt_level=3, backend=ORT)
    conv = next(n for n in Model.from_proto(result).main.nodes if n.op_type == "QLinearConv")
    dtypes = [value.dtype for value in (conv.input(0), conv.input(3)) if value is not None]
    assert dtypes == [DataType.UINT8, DataType.INT8]


def test_signed_data_from_outside_stays_a_unit() -> None:
    text = CONV.replace("float[1,2,4,4] x", "int8[1,2,4,4] q")
    text = text.replace("q = QuantizeLinear(x, s, z)", "")
    text = text.replace("float[1,2,4,4] y)", "int8[1,2,4,4] p)")
    text = text.replace("y = DequantizeLinear(p, t, z)", "")
    result = optimize(parse(text), opt_level=3, backend=ORT)
    assert "Conv" in [node.op_type for node in result.graph.node]
