import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "canonicalize_cast"


def test_each_reader_has_a_cast_of_its_own() -> None:
    head = "(int8[2] x) => (float[2] y, float[2] z)"
    assert_rewrites(
        PASS,
        f"{head} {{ c = Cast<to=1>(x) y = Exp(c) z = Neg(c) }}",
        f"{head} {{ c = Cast<to=1>(x) d = Cast<to=1>(x) y = Exp(c) z = Neg(d) }}",
    )


def test_one_reader_twice() -> None:
    head = "(int8[2] x) => (float[2] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ c = Cast<to=1>(x) y = Add(c, c) }}",
        f"{head} {{ c = Cast<to=1>(x) d = Cast<to=1>(x) y = Add(c, d) }}",
    )


def test_what_a_body_reads_stays() -> None:
    text = """(int8[2] x, bool k) => (float[2] y, float[2] z) {
      c = Cast<to=1>(x) z = Neg(c)
      y = If(k) <then_branch = t () => (float[2] a) { a = Neg(c) },
                 else_branch = e () => (float[2] b) { b = Exp(c) }> }"""
    assert_unchanged(PASS, text, because="a body reads it")


def test_a_dtype_that_a_call_decides_stays() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
      g (int8[2] x) => (float[2] y) { y = local.f<to=1>(x) }
      <domain: "local", opset_import: ["": 21]>
      f <to> (x) => (y) { c = Cast<to: int = @to>(x) y = Add(c, c) }"""
    assert_unchanged(PASS, text, because="is a function parameter")


@pytest.mark.parametrize(
    ("before", "after", "to"),
    [("float", "float16", 10), ("int32", "float", 1), ("float", "int4", 22), ("float", "string", 8)],
)
def test_a_cast_to_a_dtype_that_is_no_wider_stays(before: str, after: str, to: int) -> None:
    text = f"""({before}[2] x) => ({after}[2] y, {after}[2] z) <int64[1] s = {{2}}> {{
      c = Cast<to={to}>(x) y = Reshape(c, s) z = Reshape(c, s) }}"""
    assert_unchanged(PASS, text, because="the Cast does not widen its dtype")


def test_from_four_bits() -> None:
    head = "(int4[2] x) => (int8[2] y, int8[2] z)"
    assert_rewrites(
        PASS,
        f"{head} {{ c = Cast<to=3>(x) y = Neg(c) z = Abs(c) }}",
        f"{head} {{ c = Cast<to=3>(x) d = Cast<to=3>(x) y = Neg(c) z = Abs(d) }}",
    )


def test_an_operand_of_no_known_dtype_stays() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "odd": 1]>
      g (int8[2] x) => (float[2] y) { h = odd.Op(x) c = Cast<to=1>(h) y = Add(c, c) }"""
    assert_unchanged(PASS, text, because="a dtype of the Cast is not known")
