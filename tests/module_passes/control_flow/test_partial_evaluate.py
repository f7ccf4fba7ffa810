import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, get_pass
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "partial_evaluate"
DOUBLE = "<body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo) { co = Identity(ci) xo = Add(xi, xi) }>"


def loop(constants: str, operands: str, body: str = DOUBLE, inputs: str = "float[2] x") -> str:
    return f"({inputs}) => (float[2] y) <{constants}> {{ y = Loop({operands}) {body} }}"


def test_a_loop_is_unrolled_on_demand() -> None:
    text = loop("int64 n = {2}, bool c = {1}", "n, c, x")
    after = "(float[2] x) => (float[2] y) { a = Add(x, x) y = Add(a, a) }"
    assert_rewrites(PASS, text, after, max_iterations=2)
    made = assert_undone(PASS, text, max_iterations=2)
    assert [node.name for node in made.graph.node] == ["y/0/Add", "y/1/Add"]
    assert [list(node.output) for node in made.graph.node] == [["y/0/xo"], ["y"]]


@pytest.mark.parametrize(
    ("constants", "operands", "inputs"),
    [
        ("int64 n = {0}, bool c = {1}", "n, c, x", "float[2] x"),
        ("int64[1] n = {-3}, bool c = {1}", "n, c, x", "float[2] x"),
        ("int64 n = {7}, bool c = {0}", "n, c, x", "float[2] x"),
        ("bool c = {0}", "n, c, x", "float[2] x, int64 n"),
        ("int64 n = {0}", "n, c, x", "float[2] x, bool c"),
        ("bool c = {0}", ", c, x", "float[2] x"),
    ],
)
def test_a_loop_that_never_runs_is_its_initial_values(
    constants: str, operands: str, inputs: str
) -> None:
    assert_rewrites(
        PASS,
        loop(constants, operands, inputs=inputs),
        f"({inputs}) => (float[2] y) {{ y = Identity(x) }}",
    )


@pytest.mark.parametrize(
    ("constants", "operands", "goes_on"),
    [
        ("int64 n = {1}, bool c = {1}", "n, c, x", "co = Identity(ci)"),
        (
            "int64 n = {1}",
            "n, , x",
            "s = ReduceSum<keepdims=0>(xo) z = Constant<value_float=0.0>() co = Less(s, z)",
        ),
        ("int64 n = {9}, bool c = {1}", "n, c, x", "co = Constant<value = bool {0}>()"),
        ("bool c = {1}, bool stop = {0}", ", c, x", "t = Identity(stop) co = Identity(t)"),
    ],
)
def test_a_loop_that_runs_once_is_its_body(constants: str, operands: str, goes_on: str) -> None:
    body = f"<body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo) <float[2] w = {{3,4}}> {{ xo = Add(xi, w) {goes_on} }}>"
    text = loop(constants, operands, body)
    assert_rewrites(
        PASS, text, "(float[2] x) => (float[2] y) <float[2] w = {3,4}> { y = Add(x, w) }"
    )
    assert_undone(PASS, text)


def test_scan_outputs_are_stacked() -> None:
    text = (
        "(float[2] x) => (float[2] y, float[3,2] s, int64[3] k) <int64 n = {3}, bool c = {1}> { y, s, k = Loop(n, c, x) <"
        "body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo, float[2] t, int64 k2) { co = Identity(ci) xo = Add(xi, xi) t = Mul(xo, x) k2 = Identity(i) }> }"
    )
    after = (
        "(float[2] x) => (float[2] y, float[3,2] s, int64[3] k) <int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}, int64[1] p0 = {0}, int64[1] p1 = {0}, int64[1] p2 = {0}, int64[1] q0 = {0}, int64[1] q1 = {0}, int64[1] q2 = {0}> {"
        " a = Add(x, x) b = Add(a, a) y = Add(b, b)"
        " t0 = Mul(a, x) t1 = Mul(b, x) t2 = Mul(y, x)"
        " u0 = Unsqueeze(t0, p0) u1 = Unsqueeze(t1, p1) u2 = Unsqueeze(t2, p2) s = Concat<axis=0>(u0, u1, u2)"
        " k0 = Identity(i0) k1 = Identity(i1) k2 = Identity(i2)"
        " v0 = Unsqueeze(k0, q0) v1 = Unsqueeze(k1, q1) v2 = Unsqueeze(k2, q2) k = Concat<axis=0>(v0, v1, v2) }"
    )
    assert_rewrites(PASS, text, after, max_iterations=3)
    assert_undone(PASS, text, max_iterations=3)


@pytest.mark.parametrize("opset", [11, 13])
def test_one_iteration_collects_one_row(opset: int) -> None:
    text = (
        "(float[2] x) => (float[2] y, float[1,2] s) <int64 n = {1}, bool c = {1}> { y, s = Loop(n, c, x) <"
        "body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo, float[2] t) { co = Identity(ci) xo = Add(xi, xi) t = Neg(xo) }> }"
    )
    row = "Unsqueeze<axes=[0]>(t)" if opset == 11 else "Unsqueeze(t, a)"
    constants = "" if opset == 11 else "<int64[1] a = {0}> "
    assert_rewrites(
        PASS,
        text,
        f"(float[2] x) => (float[2] y, float[1,2] s) {constants}{{ y = Add(x, x) t = Neg(y) s = {row} }}",
        opset=opset,
    )


def test_loops_in_loops_are_unrolled_from_the_inside() -> None:
    inner = "<body = ib (int64 j, bool cj, float[2] v) => (bool d, float[2] w) { d = Identity(cj) w = Add(v, xi) }>"
    text = loop(
        "int64 n = {2}, bool c = {1}",
        "n, c, x",
        f"<body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo) {{ co = Identity(ci) xo = Loop(n, c, xi) {inner} }}>",
    )
    assert_rewrites(
        PASS,
        text,
        "(float[2] x) => (float[2] y) { a = Add(x, x) b = Add(a, x) d = Add(b, b) y = Add(d, b) }",
        max_iterations=2,
    )
    assert_undone(PASS, text, max_iterations=2)


def test_an_inner_loop_with_the_outer_trip_count_is_next() -> None:
    inner = "<body = ib (int64 j, bool cj, float[2] v) => (bool d, float[2] w) { d = Identity(cj) w = Exp(v) }>"
    text = loop(
        "int64 n = {2}, bool c = {1}",
        "n, c, x",
        f"<body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo) {{ co = Identity(ci) xo = Loop(i, c, xi) {inner} }}>",
    )
    assert_rewrites(PASS, text, "(float[2] x) => (float[2] y) { y = Exp(x) }", max_iterations=2)


def test_in_a_local_function_constants_become_nodes() -> None:
    header = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[2] x) => (float[2] y) { y = local.f(x) } <domain: "local", opset_import: ["" : 21]> f (v) => (u) { '
    text = (
        header
        + "n = Constant<value_int=1>() u = Loop(n, , v) <body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo) <float[2] w = {3,4}> { co = Identity(ci) xo = Add(xi, w) }> }"
    )
    assert_rewrites(PASS, text, header + "w = Constant<value = float[2] {3,4}>() u = Add(v, w) }")
    assert_undone(PASS, text)


def test_an_output_that_is_captured_or_handed_through() -> None:
    text = (
        "(float[2] x) => (float[2] y, float[2] z) <int64 n = {1}, bool c = {1}> { k = Exp(x) p, q = Loop(n, c, x, k) <"
        "body = b (int64 i, bool ci, float[2] u, float[2] v) => (bool ci, float[2] v, float[2] k) { }> y = Neg(p) z = Abs(q) }"
    )
    assert_rewrites(
        PASS,
        text,
        "(float[2] x) => (float[2] y, float[2] z) { k = Exp(x) y = Neg(k) z = Abs(k) }",
        runtime="none",
    )


BODY = "<body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo) {{ {} }}>"


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            loop("int64 n = {2}, bool c = {1}", "n, c, x"),
            "it runs 2 times, more than max_iterations=0",
        ),
        (
            loop("bool c = {1}", "n, c, x", inputs="float[2] x, int64 n"),
            "the number of iterations is not a constant",
        ),
        (
            loop("bool c = {1}", "n, c, x", inputs="float[2] x, int64 n = {0}"),
            "the number of iterations is not a constant",
        ),
        (
            loop("int64 n = {1}", "n, c, x", inputs="float[2] x, bool c"),
            "the condition is not a constant",
        ),
        (loop("bool c = {1}", ", c, x"), "nothing ends it"),
        (
            loop(
                "int64 n = {3}, bool c = {1}, float z = {0}",
                "n, c, x",
                BODY.format("xo = Add(xi, xi) s = ReduceSum<keepdims=0>(xo) co = Less(s, z)"),
            ),
            "the body decides when it ends",
        ),
        (
            "(float[2] x) => (float[2] y, float[k,2] s) <int64 n = {0}, bool c = {1}> { y, s = Loop(n, c, x) <body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo, float[2] t) { co = Identity(ci) xo = Add(xi, xi) t = Neg(xo) }> }",
            "its empty scan output has no known shape",
        ),
        (loop("int64 n = {1}, bool c = {1}", "n, c"), "its operands do not match its body"),
        (loop("int64 n = {1}, bool c = {1}", "n, c, "), "its operands do not match its body"),
    ],
)
def test_loops_that_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


WHILE = (
    "(float[2] x) => (float[2] y) <int64 a = {{0}}, int64 one = {{1}}, int64 three = {{3}}, bool c = {{1}}> {{"
    " z, y = Loop({limit}, c, a, x) <body = b (int64 i, bool ci, int64 k, float[2] v) =>"
    " (bool co, int64 k2, float[2] v2) {{ {body} }}> }}"
)
LESS = "k2 = Add(k, one) co = Less(k2, three) v2 = Exp(v)"


@pytest.mark.parametrize(
    ("limit", "body"),
    [
        ("", LESS),
        (
            "",
            "k2 = Add(i, one) co = LessOrEqual(k2, k) v2 = Exp(v)".replace(
                "(k2, k)", "(k2, two)"
            ).replace("co =", "two = Add(one, one) co ="),
        ),
        (
            "",
            "f = Cast<to=1>(k) g = Cast<to=1>(one) h = Add(f, g) t = Cast<to=1>(three) co = Less(h, t) k2 = Add(k, one) v2 = Exp(v)",
        ),
        ("", "k2 = Add(k, one) e = Equal(k2, three) n = Not(e) co = And(n, ci) v2 = Exp(v)"),
    ],
)
def test_a_while_loop_over_constants_is_unrolled_on_demand(limit: str, body: str) -> None:
    text = WHILE.format(limit=limit, body=body)
    after = "(float[2] x) => (float[2] y) { a = Exp(x) b = Exp(a) y = Exp(b) }"
    assert unrolled(text, 3) == unrolled(after, 0)
    assert_undone(PASS, text, max_iterations=3)


def unrolled(text: str, most: int) -> str:
    """Return the hash of the live nodes after the pass, where equal bits have been compared."""
    before = parse(text)
    model = Model.from_proto(before)
    get_pass(PASS, max_iterations=most).apply(model, PassContext.isolated())
    feeds = make_inputs(before).feeds
    one, other = Session(before).run(feeds)["y"], Session(model.to_proto()).run(feeds)["y"]
    assert one.tobytes() == other.tobytes()
    for name in ("eliminate_identity", "eliminate_deadend", "eliminate_unused_initializer"):
        get_pass(name).apply(model, PassContext.isolated())
    return model.main.structural_hash()


def test_a_limit_ends_a_while_loop_before_its_condition() -> None:
    text = WHILE.format(limit="two", body=LESS).replace("bool c =", "int64 two = {2}, bool c =")
    after = "(float[2] x) => (float[2] y) { a = Exp(x) y = Exp(a) }"
    assert unrolled(text, 5) == unrolled(after, 0)


@pytest.mark.parametrize(
    ("body", "because"),
    [
        (LESS, "it runs more than 2 times"),
        (
            LESS.replace("k2, three", "k2, k2").replace("Less(", "Equal("),
            "it runs more than 2 times",
        ),
        # Integer division by zero ends a process.
        ("k2 = Div(k, a) co = Less(k2, three) v2 = Exp(v)", "the body decides when it ends"),
        (
            "s = ReduceSum<keepdims=0>(v) t = Cast<to=7>(s) k2 = Add(k, one) co = Less(t, three) v2 = Exp(v)",
            "the body decides when it ends",
        ),
        (
            "f = Cast<to=1>(k) g = Cast<to=7>(f) k2 = Add(k, one) co = Less(g, three) v2 = Exp(v)",
            "the body decides when it ends",
        ),
    ],
)
def test_while_loops_that_stay(body: str, because: str) -> None:
    assert_unchanged(PASS, WHILE.format(limit="", body=body), because=because, max_iterations=2)


def test_a_draw_of_each_iteration_is_another_one() -> None:
    body = BODY.format("co = Identity(ci) r = RandomNormalLike<seed=1.0>(xi) xo = Add(xi, r)")
    assert_unchanged(
        PASS,
        loop("int64 n = {2}, bool c = {1}", "n, c, x", body),
        because="the body is not deterministic",
        max_iterations=5,
    )


def test_a_loop_that_exceeds_max_nodes_stays() -> None:
    assert_unchanged(
        PASS,
        loop("int64 n = {1000000000}, bool c = {1}", "n, c, x"),
        because="unrolling would make 2000000000 nodes, more than max_nodes",
        max_iterations=1 << 40,
    )


def test_the_limit_holds_for_all_loops_together() -> None:
    text = f"(float[2] x) => (float[2] y) <int64 n = {{3}}, bool c = {{1}}> {{ h = Loop(n, c, x) {DOUBLE} y = Loop(n, c, h) {DOUBLE.replace('xo', 'xp').replace('co', 'cp')} }}"
    model, ctx = Model.from_proto(parse(text)), PassContext.isolated()
    get_pass(PASS, max_iterations=3, max_nodes=6).apply(model, ctx)
    assert len(model.main.nodes_of("Loop")) == 1


def test_quantization_annotations_keep_their_body() -> None:
    proto = parse(loop("int64 n = {1}, bool c = {1}", "n, c, x"))
    body = proto.graph.node[0].attribute[0].g
    annotation = body.quantization_annotation.add(tensor_name="xo")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="xi")
    check_declined(proto, because="quantization annotations refer to the body")


def check_declined(proto: onnx.ModelProto, because: str) -> None:
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(PASS).apply(model, ctx)
    assert len(model.journal) == 0
    assert any(because in remark.reason for remark in ctx.remarks)


def test_the_types_are_those_of_the_iterations() -> None:
    body = "<body = b (int64 i, bool ci, xi) => (bool co, xo) { co = Identity(ci) xo = Concat<axis=0>(xi, xi) }>"
    proto = parse(
        f"(float[2] x) => (float[k] y) <int64 n = {{2}}, bool c = {{1}}> {{ h = Loop(n, c, x) {body} y = Relu(h) }}"
    )
    model = Model.from_proto(proto)
    get_pass(PASS, max_iterations=2).apply(model, PassContext.isolated())
    h = model.main.values["h"]
    assert h.shape == (8,)
    onnx.checker.check_model(model.to_proto(), full_check=True)


def _scan(length: str, ways: str = "") -> str:
    return (
        f"(float[2] s, float[{length},2] w) => (float[2] y, float[K,2] z) {{"
        f" a, b = Scan<num_scan_inputs = 1{ways}, body = b (float[2] p, float[2] q) =>"
        " (float[2] r, float[2] t) { r = Add(p, q) t = Neg(r) }> (s, w) y = Relu(a) z = Relu(b) }"
    )


def test_a_scan_of_one_row_is_its_body() -> None:
    assert_rewrites(
        PASS,
        _scan("1"),
        "(float[2] s, float[1,2] w) => (float[2] y, float[K,2] z) <int64 i = {0}, int64[1] axes = {0}>"
        " { q = Gather(w, i) r = Add(s, q) t = Neg(r) b = Unsqueeze(t, axes) y = Relu(r) z = Relu(b) }",
    )


def test_a_scan_is_unrolled_on_demand() -> None:
    assert_rewrites(
        PASS,
        _scan("2"),
        "(float[2] s, float[2,2] w) => (float[2] y, float[K,2] z)"
        " <int64 i = {0}, int64 j = {1}, int64[1] axes = {0}, int64[1] axes1 = {0}>"
        " { q = Gather(w, i) r = Add(s, q) t = Neg(r) q1 = Gather(w, j) r1 = Add(r, q1) t1 = Neg(r1)"
        " u = Unsqueeze(t, axes) u1 = Unsqueeze(t1, axes1) b = Concat<axis=0>(u, u1)"
        " y = Relu(r1) z = Relu(b) }",
        max_iterations=2,
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (_scan("2"), "it runs 2 times, more than max_iterations=0"),
        (_scan("N"), "the number of iterations is not a constant"),
        (_scan("0"), "its empty scan output has no known shape"),
        (_scan("1", ", scan_input_directions=[1]"), "it scans backwards or along another axis"),
        (
            """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
            g (float[2] s, float[1,2] w) => (float[2] y) { y = d.f<n=1>(s, w) }
            <domain: "d", opset_import: ["" : 21]>
            f <n> (s, w) => (y) { y, z = Scan<num_scan_inputs: int = @n, body = b (p, q) => (r, t) {
              r = Add(p, q) t = Neg(r) }>(s, w) }""",
            "its operands do not match its body",
        ),
    ],
)
def test_scans_that_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_rows_of_8_bit_floats_are_not_joined() -> None:
    assert_unchanged(
        PASS,
        "(float[2] s, float[1,2] w) => (float[2] y, float8e4m3fn[1,2] z) {"
        " y, z = Scan<num_scan_inputs = 1, body = b (float[2] p, float[2] q) =>"
        " (float[2] r, float8e4m3fn[2] t) { r = Add(p, q) t = Cast<to=17>(r) }> (s, w) }",
        because="rows of this dtype cannot be concatenated",
        opset=19,
    )


def test_a_scan_that_only_an_unrolled_one_read_is_gone() -> None:
    first = "<num_scan_inputs = 1, body = b (float[2] s, float[2] r) => (float[2] t, float[2] u) { t = Neg(s) u = Neg(r) }>"
    last = (
        "<num_scan_inputs = 1, body = e (float[2] s, float[1,2] r) => (float[2] t) { t = Neg(s) }>"
    )
    assert_rewrites(
        PASS,
        "(float[2] x, float[1,2] z) => (float[2] y) <int64[1] k = {0}>"
        f" {{ a, b = Scan{first}(x, z) c = Unsqueeze(b, k) y = Scan{last}(x, c) }}",
        "(float[2] x, float[1,2] z) => (float[2] y) { y = Neg(x) }",
    )
