"""Estimates of work, by operator."""

import pytest

from tests.small import model
from tiered.runtime import work_of
from tiered.runtime.fold.compute_cost import divides_safely


@pytest.mark.parametrize(
    ("nodes", "work"),
    [
        ("y = Relu(a)", 12),
        ("y = MatMul(a, b)", 3 * 5 * 4),
        ("y = Gemm<transA=1>(t, b)", 3 * 5 * 4),
        ('y = Einsum<equation="ij,jk->ik">(a, b)', 12 * 20 * 15),
        ("y = Det(q)", 16**2),
        ("y = ConvTranspose(i, w)", 9 * 6),
        ("y = Reshape(a, s)", None),
    ],
)
def test_shapes_tell_how_much_there_is_to_do(nodes: str, work: int | None) -> None:
    text = (
        "g (float[3,4] a, float[4,5] b, float[4,3] t, float[4,4] q, float[1,2,3] i,"
        f" float[2,3,1] w, int64[N] s) => (float[K] y) {{ {nodes} }}"
    )
    view = model(text)
    view.main.outputs[0].declared = None
    assert work_of(view.main.nodes[-1]) == work


@pytest.mark.parametrize(
    ("call", "work"),
    [
        ("y = Loop(three, , a) <body = b (int64 i, bool c, float[2] p) => (bool o, float[2] r)"
         " { o = Identity(c) r = Neg(p) }>", 3 * (1 + 2 + 2 * 1024)),
        ("y = Loop(n, , a) <body = b (int64 i, bool c, float[2] p) => (bool o, float[2] r)"
         " { o = Identity(c) r = Neg(p) }>", None),
        ("y, z = Scan<num_scan_inputs=1, body = b (float[2] p, float[2] q) => (float[2] r,"
         " float[2] t) { r = Add(p, q) t = Neg(q) }>(a, w)", 5 * (2 + 2 + 2 * 1024)),
        ("y = If(c) <then_branch = t () => (float[2] p) { p = Neg(a) },"
         " else_branch = e () => (float[2] q) { q = Abs(a) }>", 2 + 2 + 2 * 1024),
    ],
)  # fmt: skip
def test_a_body_is_to_be_done_as_often_as_it_runs(call: str, work: int | None) -> None:
    view = model(
        "g (float[2] a, float[5,2] w, int64 n, bool c) => (float[2] y)"
        f" <int64 three = {{3}}> {{ {call} }}"
    )
    assert work_of(view.main.nodes[-1]) == work


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [
        ("int32[2] c = {5,-7}", "int32[2] d = {2,-1}", True),
        ("int32[2] c = {5,-7}", "int32[2] d = {2,0}", False),
        ("int32[2] c = {5,-2147483648}", "int32[1] d = {-1}", False),
        ("int32[2] c = {5,-2147483648}", "int32[1] d = {2}", True),
        ("uint8[2] c = {5,0}", "uint8[1] d = {255}", True),
        ("", "int32[1] d = {2}", False),
        ("int32[2] c = {5,-7}", "", False),
    ],
)
def test_a_division_is_safe_if_no_divisor_is_zero_and_no_quotient_overflows(
    dividend: str, divisor: str, expected: bool
) -> None:
    held = ", ".join(filter(None, (dividend, divisor)))
    kind = "uint8" if "uint8" in held else "int32"
    lacking = [name for name, text in (("c", dividend), ("d", divisor)) if not text]
    inputs = ", ".join(f"{kind}[2] {name}" for name in (*lacking, "x"))
    view = model(f"g ({inputs}) => ({kind}[2] y) <{held}> {{ y = Div(c, d) }}")
    assert divides_safely(view.main.nodes[-1]) is expected
