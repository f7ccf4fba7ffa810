import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_lone_split_with_slice"


@pytest.mark.parametrize(("part", "start", "end", "size"), [("y, r", 0, 2, 2), ("r, y", 2, 6, 4)])
def test_the_part_that_is_read_is_cut_out(part: str, start: int, end: int, size: int) -> None:
    assert_rewrites(
        PASS,
        f"(float[N,6] x) => (float[N,{size}] y) <int64[2] s = {{2,4}}>"
        f" {{ {part} = Split<axis=-1>(x, s) }}",
        f"(float[N,6] x) => (float[N,{size}] y) <int64[1] b = {{{start}}}, int64[1] e = {{{end}}},"
        " int64[1] a = {1}> { y = Slice(x, b, e, a) }",
    )


def test_several_parts_stay() -> None:
    assert_unchanged(
        PASS, "(float[6] x) => (float[3] y, float[3] z) { y, z = Split<num_outputs=2>(x) }"
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[] x) => (float[] y) { r, y = Split<num_outputs=2>(x) }",
         "the rank is not known, or an attribute is a parameter"),
        ("(float[N] x) => (float[M] y) { r, y = Split<num_outputs=2>(x) }",
         "the size of a part is not known"),
    ],
)  # fmt: skip
def test_parts_of_unknown_size_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_a_dtype_that_no_slice_takes_stays() -> None:
    assert_unchanged(
        PASS,
        "(bfloat16[6] x) => (bfloat16[3] y) { r, y = Split<num_outputs=2>(x) }",
        because="runtimes may have no Slice of the dtype",
    )
