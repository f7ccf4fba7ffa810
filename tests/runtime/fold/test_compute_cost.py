"""Estimates of work, by operator."""

from pathlib import Path

import onnx
import pytest

from tests.small import loaded_apart, model, parsed
from tiered import Model
from tiered.runtime import work_of
from tiered.runtime.fold.compute_cost import (
    divides_safely,
    held_bytes,
    is_fragile,
    needs_of,
    waits_for_operands,
)
from tiered.testing import parse


@pytest.mark.parametrize(
    ("nodes", "work"),
    [
        ("y = Relu(a)", 12),
        ("y = MatMul(a, b)", 3 * 5 * 4),
        ("y = Gemm<transA=1>(t, b)", 3 * 5 * 4),
        ('y = Einsum<equation="ij,jk->ik">(a, b)', 12 * 20 * 15),
        ("y = Det(q)", 16**2),
        ("y = ConvTranspose(i, w)", 9 * 6),
        ("y = QLinearConv(u, f, z, v, f, z, f, z)", 6 * 4),
        ("y = Conv(i, s)", None),
        ("y = Neg(f)", 1),
        ("y = Gemm(a, b)", 3 * 5 * 4),
        ("y = Reshape(a, s)", None),
    ],
)
def test_shapes_tell_how_much_there_is_to_do(nodes: str, work: int | None) -> None:
    text = (
        "g (float[3,4] a, float[4,5] b, float[4,3] t, float[4,4] q, float[1,2,3] i,"
        f" float[2,3,1] w, int64[N] s, float f, uint8 z, uint8[1,2,3] u, uint8[2,2,1] v)"
        f" => (float[K] y) {{ {nodes} }}"
    )
    view = model(text)
    view.main.outputs[0].declared = None
    assert work_of(view.main.nodes[-1]) == work


@pytest.mark.parametrize(
    ("call", "work"),
    [
        ("y = Loop(three, , a) <body = b (int64 i, bool c, float[2] p) => (bool o, float[2] r)"
         " { o = Identity(c) r = Neg(p) }>", 3 * (1 + 2 + 2 * 1024)),
        ("y = Loop(n, , a) <body = b (int64 i, bool c, float[2] p) => (bool o, float[2] r)"
         " { o = Identity(c) r = Neg(p) }>", None),
        ("y, z = Scan<num_scan_inputs=1, body = b (float[2] p, float[2] q) => (float[2] r,"
         " float[2] t) { r = Add(p, q) t = Neg(q) }>(a, w)", 5 * (2 + 2 + 2 * 1024)),
        ("y = If(c) <then_branch = t () => (float[2] p) { p = Neg(a) },"
         " else_branch = e () => (float[2] q) { q = Abs(a) }>", 2 + 2 + 2 * 1024),
        ("y = Loop(none, , a) <body = b (int64 i, bool c, float[2] p) => (bool o, float[2] r)"
         " { o = Identity(c) r = Neg(p) }>", 1 * (1 + 2 + 2 * 1024)),
        ("y = Loop(two, , a) <body = b (int64 i, bool c, float[2] p) => (bool o, float[2] r)"
         " { o = Identity(c) r = Neg(p) }>", None),
        ("y = Loop(three, , a) <body = b (int64 i, bool c, float[2] p) => (bool o, float[2] r)"
         " { o = Identity(c) r = Slice(p, n, n) }>", 3 * (1 + 2 * 1024)),
        ("y = Scan<num_scan_inputs=1, scan_input_axes=[1], body = b (float[5] q) => (float[5] t)"
         " { t = Neg(q) }>(w)", 2 * (5 + 1024)),
        ("y = Scan<num_scan_inputs=1, body = b (float[2] q) => (float[2] t) { t = Neg(q) }>(v)",
         None),
        ("y = Neg(a)  s = SequenceConstruct(a)"
         "  u = SequenceMap<body = b (float[2] p) => (float[2] q) { q = Neg(p) }>(s)", None),
    ],
)  # fmt: skip
def test_a_body_is_to_be_done_as_often_as_it_runs(call: str, work: int | None) -> None:
    view = model(
        "g (float[2] a, float[5,2] w, float[M,2] v, int64 n, bool c) => (float[2] y)"
        f" <int64 three = {{3}}, int64 none = {{0}}, int64[2] two = {{1,2}}> {{ {call} }}"
    )
    assert work_of(view.main.nodes[-1]) == work


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [
        ("int32[2] c = {5,-7}", "int32[2] d = {2,-1}", True),
        ("int32[2] c = {5,-7}", "int32[2] d = {2,0}", False),
        ("int32[2] c = {5,-2147483648}", "int32[1] d = {-1}", False),
        ("int32[2] c = {5,-2147483648}", "int32[1] d = {2}", True),
        ("uint8[2] c = {5,0}", "uint8[1] d = {255}", True),
        ("", "int32[1] d = {2}", False),
        ("int32[2] c = {5,-7}", "", False),
    ],
)
def test_a_division_is_safe_if_no_divisor_is_zero_and_no_quotient_overflows(
    dividend: str, divisor: str, expected: bool
) -> None:
    held = ", ".join(filter(None, (dividend, divisor)))
    kind = "uint8" if "uint8" in held else "int32"
    lacking = [name for name, text in (("c", dividend), ("d", divisor)) if not text]
    inputs = ", ".join(f"{kind}[2] {name}" for name in (*lacking, "x"))
    view = model(f"g ({inputs}) => ({kind}[2] y) <{held}> {{ y = Div(c, d) }}")
    assert divides_safely(view.main.nodes[-1]) is expected


HELD = """<float[3,4] a = {1,2,3,4,5,6,7,8,9,10,11,12}, int64[2] i = {5,6}, int64[2] z = {0,1},
    int64[2] big = {30000,30000}, int64[2] edge = {8192,8192}, int64 n = {3},
    int64[2] two = {1,2}, bool[3] m = {1,0,1}, float16[2] h = {1,2}, bool on = {1}>"""


def needs(nodes: str, most: int = 1 << 40, *, ahead: bool = False) -> object:
    """Return what the last node needs, by the names of the values."""
    view = model(f"g (float x, int64[2] k) => (float u) {HELD} {{ u = Neg(x)  {nodes} }}")
    found = needs_of(view.main.nodes[-1], {}, most, ahead=ahead)
    if isinstance(found, dict):
        return {value.name: size for value, size in found.items()}
    return found and str(found)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("y = Neg(a)", {"a": 48, "y": 48}),
        ("y = Div(i, two)", {"i": 16, "two": 16, "y": 16}),
        ("y = Div(i, z)", "an integer division by zero, or one that overflows"),
        ("y = Div(a, a)", {"a": 48, "y": 48}),
        ("b = Abs(z)  y = Div(i, b)", None),
        ("b = Abs(h)  y = Neg(b)", None),
        ("b = Abs(a)  y = Neg(b)", {"b": 0, "y": 48}),
        ("y = NonZero(a)", {"a": 48, "y": 2 * 12 * 8}),
        ("y = Reshape(a, k)", None),
        ("y = Tile(a, k)", None),
        ("y = RandomNormalLike(a)", "it is random, or nothing is known of it"),
        ("y = ConstantOfShape(big)", "the result is too large to compute"),
        ("y = ConstantOfShape(edge)", {"edge": 16, "y": 1 << 28}),
        ("y = Compress(a, m)", {"a": 48, "m": 3, "y": 2 * 12 * 4}),
        ("y = NonZero(n)", {"n": 8, "y": 8}),
        ("y = SequenceConstruct(a)", "a dtype cannot be computed"),
        ("b = Tile(a, k)  y = NonZero(b)", None),
        ("q, y = Loop(n, on, two) <body = b (int64 at, bool c, int64[2] p) =>"
         " (bool o, int64[2] r, int64[2] s) { o = Less(at, n)  r = Abs(p)  s = Neg(p) }>",
         "the size of the result is not known beforehand"),
    ],
)  # fmt: skip
def test_a_node_needs_its_operands_and_results(nodes: str, expected: object) -> None:
    assert needs(nodes) == expected


def test_what_divides_is_looked_at_ahead_of_its_operands() -> None:
    assert needs("b = Abs(z)  y = Div(i, b)", ahead=True) == {"i": 16, "b": 0, "y": 16}


def test_the_memory_has_a_limit() -> None:
    assert needs("y = Neg(a)", 96) == {"a": 48, "y": 48}
    assert needs("y = Neg(a)", 95) == "computing it takes too much memory"


LOOP = """y = Loop(LIMIT, on, two) <body = b (int64 at, bool c, int64[2] p) => (bool o, int64[2] r)
    { o = Identity(c)  r = Abs(p) }>"""


def test_a_body_must_run_a_known_number_of_times() -> None:
    assert needs(LOOP.replace("LIMIT", "n")) == {"n": 8, "on": 1, "two": 16, "y": 16}
    assert needs(LOOP.replace("LIMIT", "")) == "how often it runs is not known beforehand"
    open_ = "q = Squeeze(k)  " + LOOP.replace("LIMIT", "")
    assert needs(open_.replace("on, two", "on, k"), ahead=True) is None


def test_a_division_without_overflow_may_have_the_greatest_divisor() -> None:
    view = model(
        "g (uint8 x) => (uint8[1] y) <uint8[1] c = {0}, uint8[1] d = {255}> { y = Div(c, d) }"
    )
    assert divides_safely(view.main.nodes[-1])


@pytest.mark.parametrize(
    ("call", "fragile"),
    [
        ("y = Conv(t, t)", True),
        ("y = Relu(t)", False),
        ("y = vendor.Conv(t, t)", False),
        ("y = If(c) <then_branch = p () => (float[1,1,1] q) { q = Relu(t) },"
         " else_branch = e () => (float[1,1,1] r) { r = Abs(t) }>", True),
    ],
)  # fmt: skip
def test_windows_and_bodies_are_fragile(call: str, fragile: bool) -> None:
    view = parsed(
        '<ir_version: 10, opset_import: ["": 21, "vendor": 1]>'
        f" g (float[1,1,1] t, bool c) => (float[1,1,1] y) {{ {call} }}"
    )
    assert is_fragile(view.main.nodes[-1]) is fragile


def test_a_result_that_an_annotation_names_is_not_computed() -> None:
    proto = parse("(float x) => (float u) <float a = {1}> { u = Neg(x)  y = Abs(a) }")
    annotation = proto.graph.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="y")
    node = Model.from_proto(proto).main.nodes[-1]
    assert str(needs_of(node, {}, 99)) == "training info or an annotation names the result"


def test_weights_on_disk_take_no_memory(tmp_path: Path) -> None:
    text = "(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }"
    models = loaded_apart(parse(text), tmp_path), parsed(text)
    w, inline = (model.main.values["w"] for model in models)
    assert [held_bytes(value, 8) for value in (w, inline)] == [0, 8]


def test_bodies_divisions_and_halves_wait_for_their_operands() -> None:
    body = """y = If(on)<then_branch = t () => (float[3,4] p) { p = Neg(a) },
                       else_branch = e () => (float[3,4] q) { q = Abs(a) }>"""
    for nodes, expected in (
        (body, True), ("y = Div(i, two)", True), ("y = Mod(i, two)", True), ("y = Neg(h)", True),
        ("y = Neg(a)", False), ("y = Div(a, a)", False), ("y = Cast<to = 1>(h)", True),
    ):  # fmt: skip
        view = model(f"g (float x) => (float u) {HELD} {{ u = Neg(x)  {nodes} }}")
        assert waits_for_operands(view.main.nodes[-1]) is expected, nodes


def test_a_node_that_depends_on_a_parameter_of_its_function_is_not_computed() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[2] x) => (float[2] y) { y = f.F<axis = 0>(x) }
        <domain: "f", opset_import: ["" : 21]> F <axis> (v) => (u, w) {
            u = Softmax<axis : int = @axis>(v)  c = Constant<value = bool {1}>()
            w = If(c)<then_branch = t () => (p) { p = Softmax<axis : int = @axis>(v) },
                      else_branch = e () => (q) { q = Abs(v) }> }"""
    (function,) = Model.from_proto(onnx.parser.parse_model(text)).functions
    for node in function.nodes[0], function.nodes[2]:
        assert "parameter" in str(needs_of(node, {}, 99))


def test_a_scan_of_a_parameter_of_its_function_runs_an_unknown_number_of_times() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[3,2] x) => (float[3,2] y) { y = f.F<n = 1>(x) }
        <domain: "f", opset_import: ["" : 21]> F <n> (v) => (u) {
            c = Constant<value = float[3,2] {1,2,3,4,5,6}>()
            u = Scan<num_scan_inputs HERE, body = b (float[2] p) => (float[2] q) { q = Neg(p) }>(c)
        }"""
    for written, expected in (("= 1", 3 * (2 + 1024)), (": int = @n", None)):
        proto = onnx.parser.parse_model(text.replace("HERE", written))
        (function,) = Model.from_proto(proto).functions
        assert work_of(function.nodes[1]) == expected


def test_sizes_that_are_known_are_not_asked_for_again() -> None:
    view = model(f"g (float x) => (float u) {HELD} {{ u = Neg(x)  y = Neg(a) }}")
    node = view.main.nodes[-1]
    a, y = node.given(0), node.output
    assert needs_of(node, {a: 1000}, 1048) == {y: 48}
    assert str(needs_of(node, {a: 1000}, 1047)) == "computing it takes too much memory"
