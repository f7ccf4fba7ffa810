from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_zero_bias"

BEFORE = (
    "(uint8[1,1,4,4] x, uint8[2,1,3,3] w{fed}) => (uint8[1,2,{d},{d}] y)"
    " <float s = {{0.5}}, uint8 z = {{3}}, float t = {{4}}{bias}>"
    " {{ y = QLinearConv<{attrs}>(x, s, z, w, s, z, t, z{b}) }}"
)


def _model(bias: str = "", fed: str = "", attrs: str = "kernel_shape=[3,3]", d: int = 2) -> str:
    return BEFORE.format(
        bias=f", {bias}" if bias else "",
        fed=f", {fed}" if fed else "",
        attrs=attrs,
        d=d,
        b=", b" if bias or fed else "",
    )


def test_zeros_are_not_added() -> None:
    for attrs, d in (("kernel_shape=[3,3]", 2), ("pads=[1,1,1,1]", 4)):
        assert_rewrites(
            PASS, _model("int32[2] b = {0,0}", attrs=attrs, d=d), _model(attrs=attrs, d=d)
        )


def test_other_numbers_are_added() -> None:
    assert_unchanged(PASS, _model("int32[2] b = {0,1}"), because="the bias is not zero")


def test_a_bias_that_may_be_fed_stays() -> None:
    assert_unchanged(PASS, _model(fed="int32[2] b = {0,0}"), because="the bias is not a constant")


def test_a_float_zero_has_an_effect() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1,4,4] x, float[2,1,3,3] w) => (float[1,2,2,2] y) <float[2] b = {0,0}>"
        " { y = Conv(x, w, b) }",
    )
    assert_unchanged(PASS, _model())
