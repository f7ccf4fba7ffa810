import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_minmax"


def test_the_first_operand_is_spelled_out() -> None:
    for op in ("Max", "Min"):
        for opset, dim in ((7, "4"), (21, "N")):
            inputs = ", ".join(f"float[{dim}] {name}" for name in "abcd")
            assert_rewrites(
                PASS,
                f"({inputs}) => (float[{dim}] y) {{ h = {op}(a, b)  i = {op}(h, c)  y = {op}(i, d) }}",
                f"({inputs}) => (float[{dim}] y) {{ y = {op}(a, b, c, d) }}",
                opset=opset,
            )


def test_shapes_broadcast_step_by_step_as_before() -> None:
    assert_rewrites(
        PASS,
        "(float a, float[1] b, float[N,1] c) => (float[N,1] y) { h = Max(a, b)  y = Max(h, c) }",
        "(float a, float[1] b, float[N,1] c) => (float[N,1] y) { y = Max(a, b, c) }",
    )


def test_integers_have_no_order() -> None:
    assert_rewrites(
        PASS,
        "(int64[N] a, int64[N] b, int64[N] c) => (int64[N] y) { h = Max(b, c)  y = Max(a, h) }",
        "(int64[N] a, int64[N] b, int64[N] c) => (int64[N] y) { y = Max(a, b, c) }",
    )


def test_zeros_of_two_signs_have_an_order() -> None:
    assert_unchanged(
        PASS,
        "(float[N] a, float[N] b, float[N] c) => (float[N] y) { h = Max(b, c)  y = Max(a, h) }",
        because="zeros of two signs would be reordered",
    )


def test_values_with_other_consumers_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[N] a, float[N] b) => (float[N] y, float[N] h) { h = Max(a, b)  y = Max(h, a) }",
        because="the inner result has other consumers",
    )


def test_a_max_of_a_min_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] a, float[N] b) => (float[N] y) { h = Min(a, b)  y = Max(h, a) }",
        because="no operands can be merged",
    )


@pytest.mark.parametrize(("op", "kept", "number"), [("Max", "c", 2), ("Min", "b", -1)])
@pytest.mark.parametrize(
    "nodes",
    [
        "y = {op}(x, b, c, b)",
        "h = {op}(x, b) y = {op}(h, c)",
        "h = {op}(x, c) y = {op}(h, b)",
        "h = {op}(x, c, b) y = {op}(b, h)",
    ],
)
def test_of_constants_one_is_left(op: str, kept: str, number: int, nodes: str) -> None:
    constants = "float b = {-1}, float c = {2}"
    text = nodes.replace("{op}", op)
    kept_text = f"{op}({kept}, x)" if "(b, h)" in text else f"{op}(x, {kept})"
    assert_rewrites(
        PASS,
        f"(float[N] x) => (float[N] y) <{constants}> {{ {text} }}",
        f"(float[N] x) => (float[N] y) <float {kept} = {{{number}}}> {{ y = {kept_text} }}",
    )


def test_constants_of_several_numbers_are_compared_one_by_one() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (float[N,3] y) <float[3] b = {1,5,-inf}, float c = {2}> { y = Min(x, b, c) }",
        "(float[N,3] x) => (float[N,3] y) <float[3] d = {1,2,-inf}> { y = Min(x, d) }",
    )


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
def test_integer_constants_are_compared_at_any_position(dtype: str) -> None:
    image = f"({dtype}[N] x, {dtype}[N] z) => ({dtype}[N] y)"
    assert_rewrites(
        PASS,
        f"{image} <{dtype} b = {{0}}, {dtype} c = {{2}}> {{ h = Min(z, c) y = Min(x, b, h) }}",
        f"{image} <{dtype} b = {{0}}> {{ y = Min(x, b, z) }}",
    )


def test_where_the_result_is_no_zero_operands_have_no_order() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x, float[N] z) => (float[N] y) <float b = {1}, float c = {2}>"
        " { h = Max(x, b) i = Max(z, c) y = Max(h, i) }",
        "(float[N] x, float[N] z) => (float[N] y) <float c = {2}> { y = Max(x, c, z) }",
    )
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] b = {1,-1}, float c = {-3}>"
        " { h = Max(x, c) y = Max(b, h) }",
        "(float[2] x) => (float[2] y) <float[2] b = {1,-1}> { y = Max(b, x) }",
    )


@pytest.mark.parametrize(
    ("constants", "nodes"),
    [
        # Zeros of two signs, of which the order decides.
        ("float b = {0}, float c = {-0.0}", "y = Max(x, b, c)"),
        # A zero that would be compared with z before x is.
        ("float b = {-1}, float c = {0}", "y = Max(x, b, z, c)"),
        # NaN wins, but which one is the runtime's choice.
        ("float b = {nan}, float c = {0}", "y = Max(x, b, c)"),
        # Together they are larger than each of them.
        ("float[2,1] b = {1,2}, float[3] c = {1,2,3}", "y = Max(x, b, c)"),
        # They do not broadcast: the runtime says so.
        ("float[2] b = {1,2}, float[3] c = {1,2,3}", "y = Max(x, b, c)"),
    ],
)
def test_constants_that_are_not_one_stay(constants: str, nodes: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[A,B] x, float[A,B] z) => (float[A,B] y) <{constants}> {{ {nodes} }}",
        because="no operands can be merged",
    )


def test_large_constants_stay() -> None:
    many = ",".join(["1"] * 65)
    assert_unchanged(
        PASS,
        f"(float[N,65] x) => (float[N,65] y) <float[65] b = {{{many}}}, float c = {{2}}>"
        " { y = Min(x, b, c) }",
        because="no operands can be merged",
    )


def test_constants_of_several_numbers_that_others_read_are_folded() -> None:
    head = "(float[N,3] x) => (float[N,3] y, float[N,3] z)"
    assert_rewrites(
        PASS,
        f"{head} <float[3] b = {{1,5,-1}}, float c = {{2}}> {{ y = Min(x, b, c) z = Add(x, b) }}",
        f"{head} <float[3] b = {{1,5,-1}}, float[3] d = {{1,2,-1}}> "
        "{ y = Min(x, d) z = Add(x, b) }",
    )


def test_a_default_is_no_constant() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, float b = {1}) => (float[N] y) <float c = {2}> { y = Max(x, b, c) }",
        because="no operands can be merged",
    )


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("y = Max(x, b, x)", "Max(x, b)"),
        ("h = Max(x, b) y = Max(x, h)", "Max(x, b)"),
        ("h = Max(x, b) i = Max(z, x) y = Max(h, i)", "Max(x, b, z)"),
    ],
)
def test_equal_operands_are_compared_once(nodes: str, left: str) -> None:
    inputs = "(float[N] x, float[N] z)"
    for dtype in ("float", "int64"):
        head = f"{inputs} => (float[N] y) <float b = {{1}}>".replace("float", dtype)
        assert_rewrites(PASS, f"{head} {{ {nodes} }}", f"{head} {{ y = {left} }}")


def test_equal_operands_around_a_zero_stay() -> None:
    for nodes in ("y = Max(x, b, x)", "y = Max(x, z, x)"):
        assert_unchanged(
            PASS,
            f"(float[N] x, float[N] z) => (float[N] y) <float b = {{0}}> {{ {nodes} }}",
            because="no operands can be merged",
        )
