import pytest

from tiered import optimize
from tiered.testing import Runtime, assert_rewrites, assert_unchanged, parse

PASS = "fuse_unsqueeze_into_dequantize"


def _model(q: str, scale: str, y: str, body: str, zero: str = "", more: str = "") -> str:
    return f"(float[1] x) => (float[{y}] y) <{q}, {scale}{zero}{more}> {{ {body}  y = Add(x, d) }}"


def test_the_integers_get_the_new_dims() -> None:
    for axes in ("1", "-1"):
        assert_rewrites(
            PASS,
            _model(
                "int8[3] q = {1,2,3}",
                "float s = {0.5}",
                "3,1",
                "h = DequantizeLinear(q, s, z)  d = Unsqueeze(h, a)",
                ", int8 z = {1}",
                f", int64[1] a = {{{axes}}}",
            ),
            _model(
                "int8[3,1] q = {1,2,3}",
                "float s = {0.5}",
                "3,1",
                "d = DequantizeLinear(q, s, z)",
                ", int8 z = {1}",
            ),
        )


@pytest.mark.parametrize(
    ("axis", "axes", "dims", "moved"),
    [
        (0, "0", "1,2,3", 1),
        (0, "2", "2,3,1", 0),
        (1, "1", "2,1,3", 2),
        (-1, "0,1", "1,1,2,3", 3),
        (-2, "-1,0", "1,2,3,1", 1),
    ],
)
def test_the_axis_of_the_scales_moves_along(axis: int, axes: str, dims: str, moved: int) -> None:
    scales = "float[3] s = {1,2,4}, int8[3] z = {0,1,2}"
    if axis in (0, -2):
        scales = "float[2] s = {1,2}, int8[2] z = {1,0}"
    count = axes.count(",") + 1
    assert_rewrites(
        PASS,
        _model(
            "int8[2,3] q = {1,2,3,4,5,6}",
            scales,
            dims,
            f"h = DequantizeLinear<axis={axis}>(q, s, z)  d = Unsqueeze(h, a)",
            "",
            f", int64[{count}] a = {{{axes}}}",
        ),
        _model(
            f"int8[{dims}] q = {{1,2,3,4,5,6}}",
            scales,
            dims,
            f"d = DequantizeLinear<axis={moved}>(q, s, z)",
        ),
    )


def test_the_scales_of_blocks_get_the_new_dims_too() -> None:
    for zero, operands in (("", "q, s"), (", int8[2,2] z = {0,1,2,3}", "q, s, z")):
        assert_rewrites(
            PASS,
            _model(
                "int8[2,4] q = {1,2,3,4,5,6,7,8}",
                "float[2,2] s = {1,2,4,8}",
                "2,1,4",
                f"h = DequantizeLinear<axis=-1, block_size=2>({operands})  d = Unsqueeze(h, a)",
                zero,
                ", int64[1] a = {1}",
            ),
            _model(
                "int8[2,1,4] q = {1,2,3,4,5,6,7,8}",
                "float[2,1,2] s = {1,2,4,8}",
                "2,1,4",
                f"d = DequantizeLinear<axis=2, block_size=2>({operands})",
                zero.replace("[2,2]", "[2,1,2]"),
            ),
        )


def test_a_list_of_one_scale_is_one_for_all() -> None:
    assert_rewrites(
        PASS,
        _model(
            "uint8[3] q = {1,2,3}",
            "float[1] s = {0.5}",
            "1,3",
            "h = DequantizeLinear(q, s)  d = Unsqueeze(h, a)",
            "",
            ", int64[1] a = {0}",
        ),
        _model("uint8[1,3] q = {1,2,3}", "float[1] s = {0.5}", "1,3", "d = DequantizeLinear(q, s)"),
    )


@pytest.mark.parametrize(
    ("dtype", "integers", "runtime"),
    # Two numbers of 4 bits are one byte.
    [
        ("int4", "33,67", "onnxruntime"),
        ("uint4", "33,67", "onnxruntime"),
        ("float8e4m3fn", "56,57,58,59", "none"),
    ],
)
def test_small_types_stay_small(dtype: str, integers: str, runtime: Runtime) -> None:
    assert_rewrites(
        PASS,
        _model(
            f"{dtype}[4] q = {{{integers}}}",
            "float s = {0.5}",
            "1,4",
            "h = DequantizeLinear(q, s)  d = Unsqueeze(h, a)",
            "",
            ", int64[1] a = {0}",
        ),
        _model(
            f"{dtype}[1,4] q = {{{integers}}}",
            "float s = {0.5}",
            "1,4",
            "d = DequantizeLinear(q, s)",
        ),
        runtime=runtime,
    )


def test_old_opsets_have_axes_as_attributes() -> None:
    assert_rewrites(
        PASS,
        _model(
            "uint8[3] q = {1,2,3}",
            "float s = {0.5}",
            "1,3",
            "h = DequantizeLinear(q, s)  d = Unsqueeze<axes=[0]>(h)",
        ),
        _model("uint8[1,3] q = {1,2,3}", "float s = {0.5}", "1,3", "d = DequantizeLinear(q, s)"),
        opset=10,
    )


def test_integers_with_other_consumers_are_not_stored_twice() -> None:
    assert_unchanged(
        PASS,
        "(int8[3] x) => (float[1,3] y, int8[3] z) <int8[3] q = {1,2,3}, float s = {1},"
        " int64[1] a = {0}>"
        " { h = DequantizeLinear(q, s)  y = Unsqueeze(h, a)  z = Add(x, q) }",
        because="the integers have other consumers",
    )


def test_floats_with_other_consumers_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x) => (float[1,3] y, float[3] z) <int8[3] q = {1,2,3}, float s = {1},"
        " int64[1] a = {0}>"
        " { h = DequantizeLinear(q, s)  y = Unsqueeze(h, a)  z = Add(x, h) }",
    )


def test_scales_of_blocks_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[4] s) => (float[1,8] y) <int8[8] q = {1,2,3,4,5,6,7,8}, int64[1] a = {0}>"
        " { h = DequantizeLinear<axis=0, block_size=2>(q, s)  y = Unsqueeze(h, a) }",
        because="the scales of blocks are not constant",
    )


def test_a_scale_that_is_fed_may_be_one_or_several() -> None:
    assert_rewrites(
        PASS,
        "(float[3] s) => (float[1,3] y) <int8[3] q = {1,2,3}, int64[1] a = {0}>"
        " { h = DequantizeLinear<axis=0>(q, s)  y = Unsqueeze(h, a) }",
        "(float[3] s) => (float[1,3] y) <int8[1,3] q = {1,2,3}>"
        " { y = DequantizeLinear<axis=1>(q, s) }",
    )
    assert_unchanged(
        PASS,
        "(float[N] x, int64[K] k) => (float[1,3] y) <int8[3] q = {1,2,3}, int64[1] a = {0}>"
        " { s = Reshape(x, k)  h = DequantizeLinear<axis=0>(q, s)  y = Unsqueeze(h, a) }",
        because="the rank of the scale is not known",
    )


def test_axes_out_of_range_still_fail() -> None:
    for axes in ("0,0", "3,0", "-4,0"):
        assert_unchanged(
            PASS,
            "(float[3] x) => (float[A,B,C] y) <int8[3] q = {1,2,3}, float s = {1},"
            f" int64[2] a = {{{axes}}}>"
            " { h = DequantizeLinear(q, s)  u = Unsqueeze(h, a)  y = Add(x, u) }",
            because="the axes are not valid",
        )


def test_a_quantised_factor_between_transposes_leaves_no_unsqueeze() -> None:
    text = """(float[N,4,H] x) => (float[N,4,H] y)
        <int8[4] q = {1,2,3,4}, float s = {0.5}, int8 z = {0}>
        { t = Transpose<perm=[0,2,1]>(x)  d = DequantizeLinear(q, s, z)  m = Mul(t, d)
          y = Transpose<perm=[0,2,1]>(m) }"""
    result = optimize(parse(text), opt_level=3)
    assert [node.op_type for node in result.graph.node] == ["DequantizeLinear", "Mul"]


def test_operators_of_onnxruntime_with_16_bits() -> None:
    unit, zero = "com.microsoft.DequantizeLinear", ", uint16 z = {1}"
    for axis, moved, scale, z in (
        ("", "", "float s = {0.5}", zero),
        ("", "", "float[1] s = {0.5}", ", uint16[1] z = {1}"),
        ("<axis=0>", "<axis=1>", "float[3] s = {0.5,1,2}", ", uint16[3] z = {1,0,3}"),
    ):
        before = f"h = {unit}{axis}(q, s, z)  d = Unsqueeze(h, a)"
        assert_rewrites(
            PASS,
            _model(
                "uint16[3,2] q = {1,2,3,4,5,6}", scale, "1,3,2", before, z, ", int64[1] a = {0}"
            ),
            _model(
                "uint16[1,3,2] q = {1,2,3,4,5,6}", scale, "1,3,2", f"d = {unit}{moved}(q, s, z)", z
            ),
            opset=17,
        )
