import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_cast"
FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, BFLOAT16, FLOAT8 = (
    1, 2, 3, 6, 7, 8, 9, 10, 11, 16, 17,
)  # fmt: skip


def _casts(start: str, middle: int, to: int, end: str) -> str:
    return f"({start}[N] x) => ({end}[N] y) {{ h = Cast<to={middle}>(x) y = Cast<to={to}>(h) }}"


@pytest.mark.parametrize(
    ("start", "middle", "to", "end"),
    [
        ("int32", INT64, FLOAT, "float"),
        ("int8", FLOAT16, FLOAT, "float"),
        ("bool", INT64, FLOAT, "float"),
        ("float16", FLOAT, DOUBLE, "double"),
        ("float16", FLOAT, BOOL, "bool"),
        ("float", DOUBLE, FLOAT16, "float16"),
        ("float16", FLOAT, INT32, "int32"),
        ("int8", INT32, UINT8, "uint8"),
        ("uint8", FLOAT, INT32, "int32"),
        ("bfloat16", FLOAT, FLOAT16, "float16"),
    ],
)
def test_a_middle_dtype_that_holds_every_value_is_skipped(
    start: str, middle: int, to: int, end: str
) -> None:
    assert_rewrites(
        PASS,
        _casts(start, middle, to, end),
        f"({start}[N] x) => ({end}[N] y) {{ y = Cast<to={to}>(x) }}",
    )


@pytest.mark.parametrize(
    ("start", "middle", "back"),
    [
        ("float16", FLOAT, FLOAT16),
        ("bfloat16", FLOAT, BFLOAT16),
        ("float", DOUBLE, FLOAT),
        ("int32", INT64, INT32),
        ("uint8", FLOAT16, UINT8),
        ("bool", FLOAT, BOOL),
    ],
)
def test_there_and_back_is_nothing(start: str, middle: int, back: int) -> None:
    text = f"({start}[N] x) => ({start}[M,N] y) <int64[1] a = {{0}}>"
    assert_rewrites(
        PASS,
        f"{text} {{ h = Cast<to={middle}>(x) k = Cast<to={back}>(h) y = Unsqueeze(k, a) }}",
        f"{text} {{ y = Unsqueeze(x, a) }}",
    )


def test_a_shared_middle_stays_for_its_other_users() -> None:
    interface = "(int32[N] x) => (float[N] y, int64[N] z)"
    assert_rewrites(
        PASS,
        f"{interface} {{ h = Cast<to=7>(x) y = Cast<to=1>(h) z = Neg(h) }}",
        f"{interface} {{ h = Cast<to=7>(x) y = Cast<to=1>(x) z = Neg(h) }}",
    )


def test_saturation_does_not_matter_where_no_float8_is() -> None:
    assert_rewrites(
        PASS,
        "(int32[N] x) => (float[N] y) { h = Cast<to=7, saturate=0>(x) y = Cast<to=1, saturate=0>(h) }",
        "(int32[N] x) => (float[N] y) { y = Cast<to=1>(x) }",
        runtime="reference",  # onnxruntime refuses the attribute where no float8 is
    )


@pytest.mark.parametrize(
    ("start", "middle", "to", "end"),
    [
        ("float", INT32, FLOAT, "float"),
        ("float", FLOAT16, FLOAT, "float"),
        ("int64", INT32, INT64, "int64"),
        ("int64", DOUBLE, INT64, "int64"),
        ("int32", FLOAT, INT32, "int32"),
        ("float", BOOL, FLOAT, "float"),
        ("int8", UINT8, FLOAT, "float"),
        ("uint8", INT8, INT32, "int32"),
        ("float16", BFLOAT16, FLOAT, "float"),
        ("float", FLOAT8, FLOAT, "float"),
        ("float", STRING, FLOAT, "float"),
    ],
)
def test_a_middle_dtype_that_loses_something_stays(
    start: str, middle: int, to: int, end: str
) -> None:
    assert_unchanged(
        PASS, _casts(start, middle, to, end), because="the middle dtype loses values of x"
    )


@pytest.mark.parametrize(
    ("start", "middle", "to", "end"),
    [
        ("int8", FLOAT, UINT8, "uint8"),
        ("float16", FLOAT, FLOAT8, "float8e4m3fn"),
        ("int32", INT64, STRING, "string"),
    ],
)
def test_a_last_dtype_with_rules_of_its_own_stays(
    start: str, middle: int, to: int, end: str
) -> None:
    assert_unchanged(
        PASS,
        _casts(start, middle, to, end),
        because="the last dtype may be reached differently from x",
    )


def test_without_the_first_dtype_nothing_is_known() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y)"
        " { m = d.Mystery(x) h = Cast<to=7>(m) y = Cast<to=1>(h) }",
        because="the dtype of x is not known",
    )
