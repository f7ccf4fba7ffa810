"""`simplify_fc_transpose.convert`: Transposes of weights of products are computed."""

from tests.small import ops, parsed
from tiered.compat.tvm.data_dep_optimization.simplify_fc_transpose import convert


def test_transposes_of_weights_of_products_are_computed() -> None:
    for text, after in (
        ("t = Transpose(w) y = MatMul(x, t)", ["MatMul"]),
        ("t = Transpose(w) y = Add(x, t)", ["Transpose", "Add"]),
        ("t = Transpose(x) y = MatMul(x, t)", ["Transpose", "MatMul"]),
        ("y = MatMul(x, w)", ["MatMul"]),
    ):
        model = parsed(
            f"(float[2,2] x) => (float[2,2] y) <float[2,2] w = {{1,2,3,4}}> {{ {text} }}"
        )
        params = {"w": 1}
        assert convert(model, params) == (model, params)
        assert sorted(ops(model)) == sorted(after), text
    proto = model.to_proto()
    assert convert(proto) == (proto, None)
