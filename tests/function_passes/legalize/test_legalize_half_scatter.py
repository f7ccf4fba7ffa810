import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "legalize_half_scatter"
HEAD = "(float16[3] x, int64[2] i, float16[2] u) => (float16[3] y)"
WIDE = (
    f"{HEAD} {{{{ a = Cast<to = 1>(x) b = Cast<to = 1>(u) "
    "c = ScatterElements<reduction = \"{}\">(a, i, b) y = Cast<to = 10>(c) }}"
)  # fmt: skip


def half(reduction: str) -> str:
    return f'{HEAD} {{ y = ScatterElements<reduction = "{reduction}">(x, i, u) }}'


@pytest.mark.parametrize("reduction", ["max", "min"])
def test_a_selection_is_exact_in_float(reduction: str) -> None:
    assert_rewrites(PASS, half(reduction), WIDE.format(reduction), runtime="none")


@pytest.mark.parametrize("reduction", ["add", "mul"])
def test_sums_and_products_are_rounded_once(reduction: str) -> None:
    made = WIDE.format(reduction)
    assert_rewrites(PASS, half(reduction), made, runtime="none", numerics="reassociating")


def test_points_of_bfloat16_are_scattered_in_float() -> None:
    head = "(bfloat16[3] x, bfloat16[1] u) => (bfloat16[3] y) <int64[1,1] i = {2}>"
    assert_rewrites(
        PASS,
        f'{head} {{ y = ScatterND<reduction = "max">(x, i, u) }}',
        f"{head} {{ a = Cast<to = 1>(x) b = Cast<to = 1>(u) "
        'c = ScatterND<reduction = "max">(a, i, b) y = Cast<to = 16>(c) }',
        runtime="none",
    )


def test_exact_sums_stay() -> None:
    assert_unchanged(PASS, half("add"), because="in float, updates are rounded once")


def test_floats_stay() -> None:
    text = half("max").replace("float16", "float")
    assert_unchanged(PASS, text, because="x is neither float16 nor bfloat16")
