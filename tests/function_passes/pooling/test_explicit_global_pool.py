import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "explicit_global_pool"


@pytest.mark.parametrize("kind", ["AveragePool", "MaxPool"])
def test_the_window_is_the_whole_picture(kind: str) -> None:
    head = "(float[N,2,3,5] x) => (float[N,2,1,1] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = Global{kind}(x) }}",
        f"{head} {{ y = {kind}<kernel_shape=[3,5]>(x) }}",
    )


@pytest.mark.parametrize("x", ["float[1,2,H,5] x", "float[1,2,0,5] x"])
def test_a_picture_of_unknown_size_stays(x: str) -> None:
    text = f"({x}) => (float[1,2,1,1] y) {{ y = GlobalAveragePool(x) }}"
    assert_unchanged(PASS, text, because="the image size is not known")
