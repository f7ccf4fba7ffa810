import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_cast_into_constantofshape"

BEFORE = "(int64[1] s) => ({to}[N] y) {{ h = ConstantOfShape{value}(s)  y = Cast<to={number}>(h) }}"
AFTER = "(int64[1] s) => ({to}[N] y) {{ y = ConstantOfShape{value}(s) }}"


def test_the_number_is_made_in_the_wanted_dtype() -> None:
    for value, to, number, after in (
        ("<value=int64[1]{3}>", "float", 1, "<value=float[1]{3}>"),
        ("<value=float[1]{1}>", "bool", 9, "<value=bool[1]{1}>"),
        ("<value=float[1]{-2}>", "int32", 6, "<value=int32[1]{-2}>"),
        ("", "int64", 7, "<value=int64[1]{0}>"),
        ("<value=float[1]{0.5}>", "double", 11, "<value=double[1]{0.5}>"),
    ):
        assert_rewrites(
            PASS,
            BEFORE.format(value=value, to=to, number=number),
            AFTER.format(value=after, to=to),
        )


@pytest.mark.parametrize(
    ("value", "to", "number"),
    [
        ("<value=float[1]{0.5}>", "int32", 6),
        ("<value=int64[1]{-1}>", "uint8", 2),
        ("<value=int64[1]{200}>", "int8", 3),
        ("<value=int64[1]{9007199254740993}>", "double", 11),
        ("<value=float[1]{0.1}>", "float16", 10),
        ("<value=float[1]{100000}>", "float16", 10),
        ("<value=float[1]{2}>", "bool", 9),
    ],
)
def test_a_number_that_changes_is_left_alone(value: str, to: str, number: int) -> None:
    assert_unchanged(
        PASS,
        BEFORE.format(value=value, to=to, number=number),
        because="the number changes in the new dtype",
    )


@pytest.mark.parametrize(("to", "number"), [("bfloat16", 16), ("string", 8), ("float8e5m2", 19)])
def test_a_dtype_that_came_later_is_left_alone(to: str, number: int) -> None:
    assert_unchanged(
        PASS,
        BEFORE.format(value="", to=to, number=number),
        because="ConstantOfShape may not support the dtype",
    )


def test_a_tensor_that_others_read_stays() -> None:
    assert_unchanged(
        PASS,
        "(int64[1] s) => (float[N] z, int64[N] y)"
        " { h = ConstantOfShape(s)  y = Cast<to=7>(h)  z = Relu(h) }",
        because="an inner value has another user",
    )
