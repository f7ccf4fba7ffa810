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


def test_a_reader_that_reads_it_twice_has_one() -> None:
    assert_unchanged(PASS, "(int8[2] x) => (float[2] y) { c = Cast<to=1>(x) y = Add(c, c) }")
    head = "(int8[2] x) => (float[2] y, float[2] z)"
    assert_rewrites(
        PASS,
        f"{head} {{ c = Cast<to=1>(x) y = Exp(c) z = Add(c, c) }}",
        f"{head} {{ c = Cast<to=1>(x) d = Cast<to=1>(x) y = Exp(c) z = Add(d, d) }}",
    )


def test_other_readers_than_elementwise_ones_share_a_cast() -> None:
    head = "(int8[2,2] x) => (float[2,2] y, float[2,2] z)"
    assert_unchanged(PASS, f"{head} {{ c = Cast<to=1>(x) y = MatMul(c, c) z = Neg(c) }}")
    assert_unchanged(PASS, f"{head} {{ c = Cast<to=1>(x) y = Gemm(c, c) z = Transpose(c) }}")
    head = "(int8[2,2] x) => (float[2,2] y, float[2,2] z, float[2,2] w)"
    assert_rewrites(
        PASS,
        f"{head} {{ c = Cast<to=1>(x) y = MatMul(c, c) z = Neg(c) w = Exp(c) }}",
        f"{head} {{ c = Cast<to=1>(x) d = Cast<to=1>(x) y = MatMul(c, c) z = Neg(c) w = Exp(d) }}",
    )


def test_readers_in_branches() -> None:
    text = """(int8[2] x, bool k) => (float[2] y, float[2] z) {{
      c = Cast<to=1>(x) z = Neg(c)
      y = If(k) <then_branch = t () => (float[2] a) {{ {then} }},
                 else_branch = e () => (float[2] b) {{ b = Concat<axis=0>(c) }}> }}"""
    assert_rewrites(
        PASS, text.format(then="a = Neg(c)"), text.format(then="d = Cast<to=1>(x) a = Neg(d)")
    )


def test_readers_in_a_loop_share_the_cast_outside() -> None:
    text = """(int8[2] x, int64 n) => (float[2] y, float[2] z) { c = Cast<to=1>(x) z = Neg(c) k = Constant<value = bool {1}>()
      y = Loop(n, k, z) <body = b (int64 i, bool ci, float[2] s) => (bool co, float[2] t) { co = Identity(ci) t = Add(s, c) }> }"""
    assert_unchanged(PASS, text)


def test_a_dtype_that_a_call_decides_stays() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
      g (int8[2] x) => (float[2] y) { y = local.f<to=1>(x) }
      <domain: "local", opset_import: ["": 21]>
      f <to> (x) => (y) { c = Cast<to: int = @to>(x) d = Neg(c) y = Add(c, d) }"""
    assert_unchanged(PASS, text, because="is a function parameter")


@pytest.mark.parametrize(
    ("before", "after", "to"),
    [
        ("float", "float16", 10),
        ("int32", "float", 1),
        ("float", "int4", 22),
        ("float", "string", 8),
    ],
)
def test_a_cast_to_a_dtype_that_is_no_wider_stays(before: str, after: str, to: int) -> None:
    text = f"""({before}[2] x) => ({after}[2] y, {after}[2] z) {{
      c = Cast<to={to}>(x) y = Identity(c) z = Identity(c) }}"""
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
      g (int8[2] x) => (float[2] y) { h = odd.Op(x) c = Cast<to=1>(h) d = Neg(c) y = Add(c, d) }"""
    assert_unchanged(PASS, text, because="a dtype of the Cast is not known")
