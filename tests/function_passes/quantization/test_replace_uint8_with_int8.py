import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_uint8_with_int8"
NPU = "int8_npu"
HEAD = "(float[1,4] x) => (float[1,4] y)"
UNSIGNED = "<float s = {0.5}, uint8 z = {125}>"
SIGNED = "<float s = {0.5}, int8 z = {-3}>"
PAIR = "q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z)"


@pytest.mark.parametrize("opset", [10, 13, 21])
def test_integers_move_with_their_zero_point(opset: int) -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} {UNSIGNED} {{ {PAIR} }}",
        f"{HEAD} {SIGNED} {{ {PAIR} }}",
        backend=NPU,
        opset=opset,
    )


def test_an_absent_zero_point_is_written() -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} <float s = {{0.5}}> {{ q = QuantizeLinear(x, s)  y = DequantizeLinear(q, s) }}",
        f"{HEAD} <float s = {{0.5}}, int8 z = {{-128}}> {{ {PAIR} }}",
        backend=NPU,
    )


def test_constants_and_moved_integers_follow() -> None:
    nodes = "q = QuantizeLinear(x, s, z) t = Transpose(q) d = DequantizeLinear(t, s, z)"
    more = "c = DequantizeLinear(w, s, z) y = Mul(d, c)"
    head = "(float[2,1] x) => (float[1,2] y)"
    assert_rewrites(
        PASS,
        f"{head} {UNSIGNED[:-1]}, uint8[2] w = {{0, 255}}> {{ {nodes} {more} }}",
        f"{head} {SIGNED[:-1]}, int8 u = {{-3}}, int8[2] w = {{-128, 127}}> "
        f"{{ {nodes} {more.replace(' z)', ' u)')} }}",
        backend=NPU,
    )


@pytest.mark.parametrize("backend", [None, "qnn_htp"])
def test_a_target_that_takes_uint8_keeps_it(backend: str | None) -> None:
    assert_unchanged(PASS, f"{HEAD} {UNSIGNED} {{ {PAIR} }}", backend=backend)


def test_integers_of_an_output_stay() -> None:
    assert_unchanged(
        PASS,
        f"(float[1,4] x) => (float[1,4] y, uint8[1,4] q) {UNSIGNED} {{ {PAIR} }}",
        backend=NPU,
        because="the integers are a graph output",
    )
