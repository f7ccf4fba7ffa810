"""What operators want of the values that they read: kinds of numbers, or one good value."""

import pytest

from tests.runtime.inputs.facts_of import facts_of

OUT = "=> (float y)"


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


STOCK = """(float[2] x, float i, uint8[2] u, int64 l, float f, bool[2] b, seq(float[2]) s) => (y)
    <float one = {1}, float two = {2}>"""
WANTED = {
    'Div(i, x)': 'dividend Div input 0',
    'Div(x, i)': 'divisor Div input 1',
    'Mod(i, x)': 'dividend Mod input 0',
    'Mod(x, i)': 'divisor Mod input 1',
    'Log(i)': 'domain Log input 0',
    'Sqrt(i)': 'domain Sqrt input 0',
    'And(i, b)': 'conjunct And input 0',
    'Or(b, i)': 'conjunct Or input 1',
    'Not(i)': 'conjunct Not input 0',
    'Where(i, x, x)': 'chooser Where input 0',
    'BitShift<direction="LEFT">(u, i)': 'small BitShift input 1',
    'Pow(x, i)': 'small Pow input 1',
    'Pow(i, x)': '',
    'BatchNormalization(x, x, x, x, i)': 'domain BatchNormalization input 4',
    'BatchNormalization(x, x, x, i, x)': '',
    'ConvInteger(u, u, i, u)': 'zero_point ConvInteger input 2',
    'ConvInteger(u, u, u, i)': 'zero_point ConvInteger input 3',
    'MatMulInteger(u, u, i)': 'zero_point MatMulInteger input 2',
    'MatMulInteger(u, u, u, i)': 'zero_point MatMulInteger input 3',
    'QLinearMatMul(u, i, u, u, x, u, x, u)': 'positive QLinearMatMul input 1',
    'QLinearMatMul(u, x, i, u, x, u, x, u)': 'zero_point QLinearMatMul input 2',
    'QLinearMatMul(u, x, u, u, i, u, x, u)': 'positive QLinearMatMul input 4',
    'QLinearMatMul(u, x, u, u, x, i, x, u)': 'zero_point QLinearMatMul input 5',
    'QLinearMatMul(u, x, u, u, x, u, i, u)': 'positive QLinearMatMul input 6',
    'QLinearMatMul(u, x, u, u, x, u, x, i)': 'zero_point QLinearMatMul input 7',
    'QLinearMatMul(i, x, u, u, x, u, x, u)': '',
    'QLinearConv(u, x, u, u, x, u, x, i)': 'zero_point QLinearConv input 7',
    'QLinearConv(u, i, u, u, x, u, x, u)': 'positive QLinearConv input 1',
    'QuantizeLinear(x, i)': 'positive QuantizeLinear input 1',
    'QuantizeLinear(x, x, i)': 'zero_point QuantizeLinear input 2',
    'DequantizeLinear(u, i)': 'positive DequantizeLinear input 1',
    'DequantizeLinear(u, x, i)': 'zero_point DequantizeLinear input 2',
    'com.microsoft.QuantizeLinear(x, i, u)': 'positive QuantizeLinear input 1',
    "com.microsoft.MultiHeadAttention<num_heads=1>(x, x, x, , i)":
        "mask MultiHeadAttention input 4",
    'HannWindow(i)': 'values HannWindow size (10,)',
    'HammingWindow(i)': 'values HammingWindow size (10,)',
    'BlackmanWindow(i)': 'values BlackmanWindow size (10,)',
    'Tile(x, i)': 'values Tile repeat (2,)',
    'ConstantOfShape(i)': 'values ConstantOfShape size (2,)',
    'Range(i, l, l)': 'values Range start (0,)',
    'Range(l, i, l)': 'values Range limit (5,)',
    'Range(l, l, i)': 'values Range step (1,)',
    'CumSum(x, i)': 'values CumSum axis (0,)',
    'Trilu(x, i)': 'values Trilu diagonal (0,)',
    'com.microsoft.Trilu(x, i)': 'values Trilu diagonal (0,)',
    'Dropout(x, i)': 'values Dropout ratio (0.5,)',
    'Dropout(x, f, i)': 'values Dropout training (0,)',
    'Clip(x, i)': 'values Clip low (-1,)',
    'Clip(x, f, i)': 'values Clip high (1,)',
    'NonMaxSuppression(x, x, i)': 'values NonMaxSuppression boxes (3,)',
    'NonMaxSuppression(x, x, l, i)': 'values NonMaxSuppression IoU (0.5,)',
    'NonMaxSuppression(x, x, l, f, i)': 'values NonMaxSuppression score (0.0,)',
    'SequenceAt(s, i)': 'values SequenceAt position (0,)',
    'SequenceErase(s, i)': 'values SequenceErase position (0,)',
    'SequenceInsert(s, x, i)': 'values SequenceInsert position (0,)',
    'DFT(x, i)': 'values DFT length (8,)',
    'DFT(x, l, i)': 'values DFT axis (1,)',
    'STFT(x, i)': 'values STFT step (4,)',
    'STFT(x, l, x, i)': 'values STFT length (16,)',
    'MelWeightMatrix(i, l, l, f, f)': 'values MelWeightMatrix bins (8,)',
    'MelWeightMatrix(l, i, l, f, f)': 'values MelWeightMatrix length (16,)',
    'MelWeightMatrix(l, l, i, f, f)': 'values MelWeightMatrix rate (8192,)',
    'MelWeightMatrix(l, l, l, i, f)': 'values MelWeightMatrix low edge (0,)',
    'MelWeightMatrix(l, l, l, f, i)': 'values MelWeightMatrix high edge (4096,)',
    'ReduceSum(x, i)': 'values ReduceSum axes (0, 1, 2, 3)',
    'ReduceMax(x, i)': 'values ReduceMax axes (0, 1, 2, 3)',
    'Sub(one, i)': 'mask 1 - x',
    'Sub(two, i)': '',
    'Sub(i, one)': '',
    'Mul(i, x)': 'factor Mul',
    'Add(x, i)': 'addend Add',
}  # fmt: skip


def test_all_that_an_operator_wants_of_an_operand() -> None:
    for call, expected in WANTED.items():
        found = facts_of(f"{STOCK} {{ y = {call} }}")
        said = [f"{each.kind} {each.why} {each.values}".removesuffix(" ()") for each in found]
        assert "; ".join(said) == expected, call
