import pytest

from tiered import optimize
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_view_into_binary"


def _model(nodes: str, z: str, axes: str = "{0}", y: str = "float[A,2,3] y") -> str:
    count = axes.count(",") + 1
    held = f" <int64[{count}] a = {axes}>" if axes else ""
    return f"(float[2,3] x, float[{z}] z) => ({y}){held} {{ {nodes} }}"


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "LessOrEqual"])
def test_the_operator_broadcasts_by_itself(op: str) -> None:
    y = f"{'bool' if op == 'LessOrEqual' else 'float'}[A,2,3] y"
    for operands in ("h, z", "z, h"):
        assert_rewrites(
            PASS,
            _model(f"h = Unsqueeze(x, a)  y = {op}({operands})", "A,2,3", "{0}", y),
            _model(f"y = {op}({operands.replace('h', 'x')})", "A,2,3", "", y),
        )


@pytest.mark.parametrize(
    ("axes", "z"), [("{0,1}", "A,4,2,3"), ("{-4,-3}", "A,4,1,1"), ("{0}", "A,4,2,1")]
)
def test_several_axes_and_fewer_than_the_operand_has(axes: str, z: str) -> None:
    y = "float[A,4,2,3] y"
    assert_rewrites(
        PASS,
        _model("h = Unsqueeze(x, a)  y = Add(h, z)", z, axes, y),
        _model("y = Add(x, z)", z, "", y),
    )


@pytest.mark.parametrize(
    ("view", "constants"),
    [
        ("Squeeze(x, a)", "int64[1] a = {0}"),
        ("Reshape(x, s)", "int64[2] s = {2,3}"),
        ("Flatten<axis=2>(x)", ""),
    ],
)
def test_dims_of_one_that_are_dropped_broadcast_too(view: str, constants: str) -> None:
    head = "(float[1,2,3] x, float[A,2,3] z) => (float[A,2,3] y)"
    held = f" <{constants}>" if constants else ""
    assert_rewrites(
        PASS,
        f"{head}{held} {{ h = {view}  y = Add(h, z) }}",
        f"{head} {{ y = Add(x, z) }}",
    )


def test_a_value_and_its_view_are_one() -> None:
    head = "(float[1,2,3] x) => (float[1,2,3] y) "
    assert_rewrites(
        PASS,
        head + "<int64[1] a = {0}> { h = Squeeze(x, a)  y = Mul(h, x) }",
        head + "{ y = Mul(x, x) }",
    )


def test_a_dim_that_no_other_operand_has_is_dropped_before() -> None:
    assert_unchanged(
        PASS,
        "(float[1,2,3] x, float[2,3] z) => (float[2,3] y) <int64[1] a = {0}>"
        " { h = Squeeze(x, a)  y = Add(h, z) }",
        because="no other operand has as many axes",
    )


def test_a_where_broadcasts_three() -> None:
    assert_rewrites(
        PASS,
        "(bool[3] c, float[2,3] x, float z) => (float[2,3] y) <int64[1] a = {0}>"
        " { h = Unsqueeze(c, a)  y = Where(h, x, z) }",
        "(bool[3] c, float[2,3] x, float z) => (float[2,3] y) { y = Where(c, x, z) }",
    )


def test_an_unsqueeze_that_others_need_stays() -> None:
    y = "float[A,2,3] y, float[1,2,3] w"
    assert_rewrites(
        PASS,
        _model("h = Unsqueeze(x, a)  y = Add(h, z)  w = Exp(h)", "A,2,3", "{0}", y),
        _model("h = Unsqueeze(x, a)  y = Add(x, z)  w = Exp(h)", "A,2,3", "{0}", y),
    )


@pytest.mark.parametrize(("axes", "z"), [("{1}", "2,A,3"), ("{2}", "2,3,A"), ("{0,2}", "1,2,A,3")])
def test_other_axes_stay(axes: str, z: str) -> None:
    assert_unchanged(
        PASS,
        _model("h = Unsqueeze(x, a)  y = Add(h, z)", z, axes, f"float[{z}] y"),
        because="other dims than those in front differ",
    )


def test_a_shape_that_is_not_known_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[] x, float[A,B] z) => (float[] y) <int64[1] a = {0}>"
        " { h = Unsqueeze(x, a)  y = Add(h, z) }",
        because="other dims than those in front differ",
    )


def test_axes_that_it_alone_adds_stay() -> None:
    for nodes in ("h = Unsqueeze(x, a)  y = Add(h, z)", "h = Unsqueeze(x, a)  y = Mul(h, h)"):
        assert_unchanged(
            PASS,
            _model(nodes, "2,3", "{0}", "float[1,2,3] y"),
            because="no other operand has as many axes",
        )


@pytest.mark.parametrize("op", ["Pow", "Max", "Min"])
def test_operators_with_a_scalar_kernel_stay(op: str) -> None:
    assert_unchanged(PASS, _model(f"h = Unsqueeze(x, a)  y = {op}(z, h)", "A,2,3"))


def test_before_opset_7_operands_have_equal_shapes() -> None:
    text = """(float[2,3] x, float[1,2,3] z) => (float[1,2,3] y) {
        h = Unsqueeze<axes=[0]>(x)  y = Add(h, z) }"""
    assert_unchanged(PASS, text, opset=6)


def test_a_table_of_positions_is_added_as_it_is() -> None:
    text = _model("h = Unsqueeze(x, a)  y = Add(h, z)", "A,2,3")
    assert [node.op_type for node in optimize(parse(text), opt_level=2).graph.node] == ["Add"]
