"""Halves to float: what stays in 16 bits, and which products count."""

import pytest

from tests.small import made_by, named, ops, parsed
from tiered import DataType
from tiered.numerics.precision.widening import Widening, widen_products

HALF, BFLOAT = DataType.FLOAT16, DataType.BFLOAT16
HELD = """<float16[2,2] w = {1,2,3,4}, float[2,2] f = {1,2,3,4}, int8[2,2] q = {1,2,3,4},
    float16 s = {1}>"""


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("y = MatMul(x, w)", ""),
        ("y = Gather(w, i)", "a table is smaller in 16 bits"),
        ("y = Gather(x, i)", ""),
        ("y = Gather(f, i)", ""),
        ("y = Clip(x, , s)", ""),
        ("d = DequantizeLinear(q, s)  y = MatMul(x, d)", "inside a Q/DQ unit"),
    ],
)
def test_tables_and_quantised_units_stay(nodes: str, reason: str) -> None:
    kind = "float" if "(f," in nodes else "float16"
    model = parsed(f"(float16[2,2] x, int64[2] i) => ({kind}[2,2] y) {HELD} {{ {nodes} }}")
    assert Widening(HALF).keep(made_by(model, "y")) == reason


@pytest.mark.parametrize(
    ("kind", "node", "count"),
    [
        ("float16", "MatMul(a, x)", 2),
        ("bfloat16", "MatMul(a, x)", 2),
        ("float", "MatMul(a, x)", 0),
        ("float16", "Add(a, x)", 0),
        ("float16", "vendor.MatMul(a, x)", 0),
    ],
)
def test_all_nodes_are_widened_if_a_product_computes_in_16_bits(
    kind: str, node: str, count: int
) -> None:
    model = parsed(
        f"""<ir_version: 10, opset_import: ["": 21, "vendor": 1]> g
        ({kind}[2,2] x) => ({kind}[2,2] y) {{ a = Relu(x)  y = {node} }}"""
    )
    found = widen_products(model, frozenset({"MatMul"}))
    assert found == [
        f"2 nodes compute in float instead of {kind}: integers have float scales"
    ] * bool(count)
    assert ops(model).count("Cast") == (2 if count else 0)
    assert named(model, "y").dtype == {"float16": HALF, "bfloat16": BFLOAT}.get(kind, 1)
