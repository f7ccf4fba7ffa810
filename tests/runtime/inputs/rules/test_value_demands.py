"""What operators want of the values that they read: kinds of numbers, or one good value."""

import pytest

from tests.runtime.inputs.facts_of import facts_of

OUT = "=> (float y)"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("y = Mod(x, i)", "divisor"),
        ("y = Log(i)", "domain"),
        ("y = And(i, i)", "conjunct"),
        ("y = Not(i)", "conjunct"),
        ('y = BitShift<direction = "LEFT">(x, i)', "small"),
        ("y = BatchNormalization(x, x, x, x, i)", "domain"),
        ("y = MatMulInteger(x, x, i)", "zero_point"),
        ("y = ConvInteger(x, x, x, i)", "zero_point"),
        ("y = QuantizeLinear(x, x, i)", "zero_point"),
        ("y = QLinearMatMul(x, i, x, x, x, x, x, x)", "positive"),
        ("y = QLinearMatMul(x, x, x, x, i, x, x, x)", "positive"),
        ("y = QLinearMatMul(x, x, x, x, x, x, i, x)", "positive"),
        ("y = QLinearMatMul(x, x, x, x, x, x, x, i)", "zero_point"),
        ("y = Div(x, i)", "divisor"),
        ("y = Div(i, x)", "dividend"),
        ("y = Sqrt(i)", "domain"),
        ("y = Pow(x, i)", "small"),
        ("y = Clip(x, i)", "values"),
        ("y = Dropout(x, i)", "values"),
        ("y = QuantizeLinear(x, i)", "positive"),
        ("y = Add(x, i)", "addend"),
    ],
)
def test_operators_want_values_of_a_kind(nodes: str, expected: str) -> None:
    found = facts_of(f"(float[2] x, float i) {OUT} {{ {nodes} }}")
    assert expected in [each.kind for each in found]


@pytest.mark.parametrize(
    ("call", "value"),
    [
        *(("HannWindow(i)", 10), ("Tile(x, i)", 2), ("ConstantOfShape(i)", 2)),
        *(("Range(i, x, x)", 0), ("Range(x, i, x)", 5), ("Range(x, x, i)", 1)),
        *(("CumSum(x, i)", 0), ("Trilu(x, i)", 0)),
        *(("Dropout(x, i)", 0.5), ("Dropout(x, x, i)", 0)),
        *(("Clip(x, i)", -1), ("Clip(x, x, i)", 1)),
        *(("NonMaxSuppression(x, x, i)", 3), ("NonMaxSuppression(x, x, x, i)", 0.5)),
        *(("SequenceAt(x, i)", 0), ("DFT(x, i)", 8), ("DFT(x, x, i)", 1)),
        *(("STFT(x, i)", 4), ("STFT(x, x, x, i)", 16)),
        *(("MelWeightMatrix(i, x, x, x, x)", 8), ("MelWeightMatrix(x, x, x, x, i)", 4096)),
        *(("MelWeightMatrix(x, i, x, x, x)", 16), ("MelWeightMatrix(x, x, i, x, x)", 8192)),
    ],
)
def test_some_operands_have_one_good_value(call: str, value: float) -> None:
    (found,) = facts_of(f"(float[2] x, float i) {OUT} {{ y = {call} }}")
    assert (found.kind, found.values) == ("values", (value,))


@pytest.mark.parametrize(
    ("nodes", "kinds"),
    [
        ("c = Less(i, x)  y = Where(c, x, x)", ["mask"]),
        ("c = Less(i, x)  y = Gather(x, c)", []),
        ("c = CumSum(i, a)  y = Gather(x, c)", ["mask"]),
        ("c = CumSum(i, a)  y = Add(c, x)", ["addend"]),
        ("y = Sub(one, i)", ["mask"]),
        ("y = Sub(a, i)", []),
        ("y = Sub(ones, i)", []),
        ("y = Sub(x, i)", []),
    ],
)
def test_comparisons_counts_and_one_minus_a_value_are_masks(nodes: str, kinds: list[str]) -> None:
    text = f"""(float[2] x, float i) {OUT} <int64 a = {{0}}, float one = {{1}},
        float[2] ones = {{1,1}}> {{ {nodes} }}"""
    assert [each.kind for each in facts_of(text)] == kinds
