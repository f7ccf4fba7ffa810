"""Estimates of work, by operator."""

import pytest

from tests.small import model
from tiered.runtime import work_of


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
