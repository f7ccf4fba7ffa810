import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_reshape_around_rows"
CONSTANTS = (
    *("float[4] scale = {1,2,3,4}", "float[4] bias = {1,-1,0,2}", "int64[2] rows = {-1,4}"),
    *("int64[3] deep = {2,3,4}", "int64[2] flat = {6,4}", "float[4,4] w = {1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6}"),
    *("float half = {0.5}", "float[1,4] row = {1,2,3,4}", "float[3,1] column = {1,2,3}"),
    *("float[3,4] plane = {1,2,3,4,5,6,7,8,9,10,11,12}", "float[1,1,4] stack = {1,2,3,4}"),
)  # fmt: skip
ROWS, DEEP = "float[6,4]", "float[2,3,4]"


def graph(inputs: str, outputs: str, nodes: str) -> str:
    return f"({inputs}) => ({outputs}) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def test_a_residual_stream_between_products_has_two_dims() -> None:
    # Two blocks: a norm, a product of two dims, and the sum with what came in.
    block = (
        "n{0} = LayerNormalization(x{0}, scale, bias) f{0} = Reshape(n{0}, rows)"
        " g{0} = Gemm(f{0}, w) d{0} = Reshape(g{0}, deep) x{1} = Add({2}d{0}, x{0}{3})"
    )
    flat = "n{0} = LayerNormalization<axis={4}>(r{0}, scale, bias) g{0} = Gemm(n{0}, w) "
    assert_rewrites(
        PASS,
        graph(
            f"{DEEP} x0",
            f"{ROWS} y",
            block.format(0, 1, "", "")
            + " "
            + block.format(1, 2, "", "")
            + " z = Relu(x2) y = Reshape(z, flat)",
        ),
        graph(
            f"{DEEP} x0",
            f"{ROWS} y",
            "r0 = Reshape(x0, rows) "
            + flat.format(0, 0, 0, 0, -1)
            + "r1 = Add(g0, r0) "
            + flat.format(1, 0, 0, 0, -1)
            + "r2 = Add(g1, r1) y = Relu(r2)",
        ),
    )


def test_dims_without_a_size_are_the_same_by_name() -> None:
    products = "to = Shape(x) r = Reshape(x, rows) g = Gemm(r, w) h = Gemm(g, w)"
    x, y = "float[B,T,4] x", "float[B,T,4] y"
    assert_rewrites(
        PASS,
        graph(
            x, y, f"{products} c = Reshape(g, to) d = Reshape(h, to) e = Mul(c, half) y = Add(e, d)"
        ),
        graph(x, y, f"{products} e = Mul(g, half) s = Add(e, h) y = Reshape(s, to)"),
    )


@pytest.mark.parametrize("operand", ["half", "scale", "row"])
def test_numbers_and_one_row_stay_as_they_are(operand: str) -> None:
    assert_rewrites(
        PASS,
        graph(
            f"{ROWS} a",
            f"{ROWS} y",
            f"c = Reshape(a, deep) e = Mul(c, {operand}) y = Reshape(e, flat)",
        ),
        graph(f"{ROWS} a", f"{ROWS} y", f"y = Mul(a, {operand})"),
    )


@pytest.mark.parametrize(("axis", "on_rows"), [("axis=2", "axis=1"), ("axis=-1", "axis=-1")])
def test_the_axis_of_a_norm_is_that_of_rows(axis: str, on_rows: str) -> None:
    assert_rewrites(
        PASS,
        graph(
            f"{ROWS} a",
            f"{ROWS} y",
            f"c = Reshape(a, deep) e = LayerNormalization<{axis}>(c, scale) y = Reshape(e, flat)",
        ),
        graph(f"{ROWS} a", f"{ROWS} y", f"y = LayerNormalization<{on_rows}>(a, scale)"),
    )


def test_what_leaves_gets_its_shape_back() -> None:
    assert_rewrites(
        PASS,
        graph(
            f"{ROWS} a, {ROWS} b",
            f"{ROWS} y, {DEEP} s",
            "c = Reshape(a, deep) d = Reshape(b, deep) s = Add(c, d) y = Reshape(s, flat)",
        ),
        graph(f"{ROWS} a, {ROWS} b", f"{ROWS} y, {DEEP} s", "y = Add(a, b) s = Reshape(y, deep)"),
    )


def test_a_reshape_that_others_read_is_read_by_them_still() -> None:
    assert_rewrites(
        PASS,
        graph(
            f"{ROWS} a",
            f"{ROWS} y, {DEEP} z",
            "c = Reshape(a, deep) e = Abs(c) y = Reshape(e, flat) z = MatMul(c, w)",
        ),
        graph(
            f"{ROWS} a", f"{ROWS} y, {DEEP} z", "c = Reshape(a, deep) y = Abs(a) z = MatMul(c, w)"
        ),
    )


@pytest.mark.parametrize(
    ("inputs", "outputs", "nodes", "because"),
    [
        (
            f"{ROWS} a",
            f"{DEEP} y",
            "c = Reshape(a, deep) y = MatMul(c, w)",
            "no operator that computes rows follows",
        ),
        *(
            (
                f"{ROWS} a",
                f"{ROWS} y",
                f"c = Reshape(a, deep) e = Mul(c, {operand}) y = Reshape(e, flat)",
                "no operator that computes rows follows",
            )
            for operand in ("column", "plane", "stack")
        ),
        (
            f"{ROWS} a, float[3,4] s",
            f"{ROWS} y",
            "c = Reshape(a, deep) e = LayerNormalization<axis=1>(c, s) y = Reshape(e, flat)",
            "no operator that computes rows follows",
        ),
        (
            f"{ROWS} a",
            f"{ROWS} y, float[2,3,1] m",
            "c = Reshape(a, deep) e, m = LayerNormalization(c, scale) y = Reshape(e, flat)",
            "no operator that computes rows follows",
        ),
        (
            f"{ROWS} a, {DEEP} b",
            f"{ROWS} y",
            "c = Reshape(a, deep) d = Add(c, b) e = Add(d, b) f = MatMul(e, w) y = Reshape(f, flat)",
            "there would be as many Reshapes",
        ),
        (
            f"{ROWS} a, {ROWS} b, {DEEP} x",
            f"{ROWS} y, {ROWS} z, {DEEP} s",
            "s = Relu(x) p = Reshape(s, rows) q = Gemm(p, w) c = Reshape(q, deep) e = Add(c, s)"
            " f = Reshape(e, rows) g = Gemm(f, w) h = Reshape(g, deep) i = Add(h, e)"
            " y = Reshape(i, rows) z = Add(a, b)",
            "the shape to return to is known too late",
        ),
    ],
)
def test_it_declines(inputs: str, outputs: str, nodes: str, because: str) -> None:
    assert_unchanged(PASS, graph(inputs, outputs, nodes), because=because)


def test_zeros_that_are_sizes_stay_sizes() -> None:
    inputs, outputs = f"{ROWS} a, {ROWS} b", f"{ROWS} y, {DEEP} s"
    assert_rewrites(
        PASS,
        graph(
            inputs,
            outputs,
            "c = Reshape<allowzero=1>(a, deep) d = Reshape<allowzero=1>(b, deep) s = Add(c, d)"
            " y = Reshape<allowzero=1>(s, flat)",
        ),
        graph(inputs, outputs, "y = Add(a, b) s = Reshape<allowzero=1>(y, deep)"),
    )


def test_an_output_of_two_dims_may_be_the_result_of_its_rows() -> None:
    # What reads rows by way of a norm that is an output keeps the type of the output.
    norm = "n = LayerNormalization({}, scale)"
    assert_rewrites(
        PASS,
        graph(
            f"{ROWS} a, {ROWS} b",
            f"{ROWS} y, {DEEP} n, {ROWS} z",
            f"c = Reshape(a, deep) d = Reshape(b, deep) s = Add(c, d) {norm.format('s')}"
            " e = Reshape(n, flat) y = Gemm(e, w) z = Reshape(s, rows)",
        ),
        graph(
            f"{ROWS} a, {ROWS} b",
            f"{ROWS} y, {DEEP} n, {ROWS} z",
            "z = Add(a, b) e = LayerNormalization(z, scale) n = Reshape(e, deep) y = Gemm(e, w)",
        ),
    )


def test_old_opsets_broadcast_by_an_attribute() -> None:
    assert_unchanged(
        PASS,
        graph(f"{ROWS} a", f"{ROWS} y", "c = Reshape(a, deep) e = Abs(c) y = Reshape(e, flat)"),
        opset=6,
    )


def test_a_body_reads_the_result_in_its_shape() -> None:
    inputs, outputs = f"{ROWS} a, bool chosen", f"{ROWS} y, {ROWS} z"
    end = (
        f"y = If(chosen)<then_branch = t () => ({ROWS} u) {{ u = Reshape(e, flat) }},"
        f" else_branch = f () => ({ROWS} v) {{ v = Neg(a) }}>"
    )
    leads = "c = Reshape(a, deep) d = Reshape(a, deep)"
    assert_rewrites(
        PASS,
        graph(inputs, outputs, f"{leads} e = Add(c, d) z = Reshape(e, rows) {end}"),
        graph(inputs, outputs, f"z = Add(a, a) e = Reshape(z, deep) {end}"),
    )


def test_a_body_takes_rows_from_outside() -> None:
    inputs = f"{ROWS} a, {ROWS} b, bool chosen"
    other = f"else_branch = f () => ({DEEP} v) {{ v = Neg(c) }}"
    whole = "c = Reshape(a, deep) y = If(chosen)<then_branch = t () => ({}) {{ {} }}, {}>"
    inside = (
        "d = Reshape(b, deep) p = Add(c, d) q = Reshape(p, flat) g = MatMul(q, w)"
        " h = Reshape(g, deep) u = Add(h, p)"
    )
    assert_rewrites(
        PASS,
        graph(inputs, f"{DEEP} y", whole.format(f"{DEEP} u", inside, other)),
        graph(
            inputs,
            f"{DEEP} y",
            whole.format(
                f"{DEEP} u",
                "p = Add(a, b) g = MatMul(p, w) r = Add(g, p) u = Reshape(r, deep)",
                other,
            ),
        ),
    )


def test_a_reshape_back_at_once_needs_the_first_one_still() -> None:
    assert_unchanged(
        PASS,
        graph(
            f"{ROWS} a",
            f"{ROWS} y, {ROWS} z, {DEEP} s",
            "c = Reshape(a, deep) z = Reshape(c, flat) s = Add(c, c) y = Reshape(s, rows)",
        ),
        because="there would be as many Reshapes",
    )
