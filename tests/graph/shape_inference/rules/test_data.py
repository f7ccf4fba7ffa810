"""The elements of small integer tensors, by the rule of each operator of shape arithmetic."""

import pytest

from tests.small import named, parsed
from tiered.graph.shape_inference.rules.data import OF_TYPES

STOCK = """int64[3] v = {5,6,7}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2},
    int64[1] minus = {-1}, int64[1] far = {-9}, int64[1] deep = {9}, int64[2,2] grid = {1,2,3,4},
    int64 three = {3}, int64 nought = {0}, int64 back = {-2}, int64[0] none = {}, bool[2] mask = {1,0},
    int64[2] axes = {0,1}, float[4] reals = {2,-3,0.5,inf}, double real = {7}, int64[2] pair = {1,2},
    bool[2] other = {1,1}, int64[2] corner = {2,0}, int64[2] turn = {-1,-2}, int32[2] small = {4,5},
    int64 least = {-9223372036854775808}, int32 low32 = {-2147483648}, int64 wide = {4294967296},
    float16 half = {16384}, int64[3] triple = {1,1,1}, int64[2] odd = {-7,7}"""


def elements(call: str, *, opset: int = 21, out: str = "y") -> object:
    """Return the elements of y as lists; a `?` for each that is not known, and symbols as text."""
    text = (
        "(float[n,m,3] x, int64[2] i, int64[k] w, bool[2] b, int64[256] many,"
        f" int64[257] more, int64 number) => (int64[?] o) <{STOCK}> {{ p = Concat<axis=0>(i, one)"
    )
    results = out if "," in out else "y"
    sizes = "s = Shape(x) own = Gather(s, nought)"
    model = parsed(f"{text} {sizes} {results} = {call} o = Cast<to=7>(y) }}", opset=opset)
    model.refresh_types()
    found = named(model, "y").elements
    return None if found is None else _shown(found.tolist())


def _shown(element: object) -> object:
    if isinstance(element, list):
        return [_shown(each) for each in element]
    if element is None:
        return "?"
    return element if isinstance(element, int) else str(element)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Shape(x)", ["n", "m", 3]),
        ("Shape<start=1>(x)", ["m", 3]),
        ("Shape<end=-1>(x)", ["n", "m"]),
        ("Shape<start=-1, end=9>(x)", [3]),
        ("Size(x)", "3*m*n"),
        ("Size(three)", 1),
        ("Gather(s, nought)", "n"),
        ("Gather(v, three)", None),  # out of range
        ("Gather(v, back)", 6),
        ("Gather(v, zero)", [5]),
        ("Gather(grid, nought)", [1, 2]),
        ("Gather<axis=1>(grid, nought)", [1, 3]),
        ("Gather(v, i)", None),
        ("Gather(v, number)", None),
        ("Gather(v, own)", None),
        ("Concat<axis=0>(v, one)", [5, 6, 7, 1]),
        ("Concat<axis=1>(grid, grid)", [[1, 2, 1, 2], [3, 4, 3, 4]]),
        ("Concat<axis=0>(i, one)", ["?", "?", 1]),
        ("Flatten<axis=0>(grid)", [[1, 2, 3, 4]]),
        ("Reshape(grid, minus)", [1, 2, 3, 4]),
        ("Squeeze(one)", 1),
        ("Unsqueeze(three, zero)", [3]),
        ("Identity(grid)", [[1, 2], [3, 4]]),
        ("Expand(three, two)", [3, 3]),
        ("Transpose(grid)", [[1, 3], [2, 4]]),
        ("Transpose<perm=[0,1]>(grid)", [[1, 2], [3, 4]]),
    ],
)
def test_elements_that_move(call: str, expected: object) -> None:
    assert elements(call) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Slice(v, one, deep)", [6, 7]),
        ("Slice(v, minus, deep)", [7]),
        ("Slice(v, zero, minus)", [5, 6]),
        ("Slice(v, far, two)", [5, 6]),
        ("Slice(v, zero, far)", []),
        ("Slice(v, zero, deep, zero, two)", [5, 7]),
        ("Slice(v, minus, far, zero, minus)", [7, 6, 5]),
        ("Slice(v, deep, zero, zero, minus)", [7, 6]),
        ("Slice(v, far, far, zero, minus)", [5]),
        ("Slice(grid, one, two, one)", [[2], [4]]),
        ("Slice(grid, one, two, minus)", [[2], [4]]),
        ("Slice(grid, corner, pair, none)", None),
        ("Slice(v, i, deep)", None),
    ],
)
def test_slices(call: str, expected: object) -> None:
    assert elements(call) == expected


@pytest.mark.parametrize(
    ("out", "call", "expected"),
    [
        ("y, a, b2", "Split<num_outputs=3>(v)", [5]),
        ("a, y", "Split(v, pair)", [6, 7]),
        ("y, a", "Split<axis=1, num_outputs=2>(grid)", [[1], [3]]),
        ("a, y", "Split<axis=-1, num_outputs=2>(grid)", [[2], [4]]),
        ("a, y", "Split<num_outputs=2>(grid)", [[3, 4]]),
        ("a, y", "Split(v, i)", None),
    ],
)
def test_parts(out: str, call: str, expected: object) -> None:
    assert elements(call, out=out) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Cast<to=7>(reals)", [2, -3, "?", "?"]),
        ("Cast<to=7>(real)", 7),
        ("Cast<to=7>(half)", "?"),
        ("Cast<to=9>(v)", [True, True, True]),
        ("Cast<to=9>(zero)", [False]),
        ("Cast<to=9>(s)", ["?", "?", True]),
        ("Cast<to=7>(mask)", [1, 0]),
        ("Cast<to=7>(small)", [4, 5]),
        ("Cast<to=6>(s)", ["n", "m", 3]),
        ("Cast<to=7>(s)", ["n", "m", 3]),
        ("Cast<to=6>(wide)", "?"),
        ("Cast<to=1>(v)", None),
        ("CastLike(reals, v)", [2, -3, "?", "?"]),
        ("CastLike(v, mask)", [True, True, True]),
        ("CastLike(s, small)", ["n", "m", 3]),
    ],
)
def test_casts(call: str, expected: object) -> None:
    assert elements(call) == expected


def test_a_cast_of_a_flag_gives_numbers_not_flags() -> None:
    found = elements("Cast<to=7>(mask)")
    assert isinstance(found, list)
    assert [type(element) for element in found] == [int, int]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Add(v, one)", [6, 7, 8]),
        ("Add(s, i)", None),
        ("Add(i, pair)", ["?", "?"]),
        ("Add(pair, i)", ["?", "?"]),
        ("Mod(v, s)", ["?", "?", 1]),
        ("Mod(pair, i)", ["?", "?"]),
        ("Sub(one, v)", [-4, -5, -6]),
        ("Mul(v, two)", [10, 12, 14]),
        ("Mul(s, v)", ["5*n", "6*m", 21]),
        ("Div(odd, two)", [-3, 3]),
        ("Div(v, zero)", ["?", "?", "?"]),
        ("Mod(odd, three)", [2, 1]),
        ("Mod(odd, minus)", [0, 0]),
        ("Mod<fmod=1>(odd, three)", None),
        ("Mod(v, zero)", ["?", "?", "?"]),
        ("Mod(s, two)", ["?", "?", 1]),
        ("Mod(s, one)", [0, 0, 0]),
        ("Mod(i, two)", ["?", "?"]),
        ("Neg(v)", [-5, -6, -7]),
        ("Neg(s)", ["-1*n", "-1*m", -3]),
        ("Neg(i)", ["?", "?"]),
        ("Neg(least)", "?"),
        ("Neg(low32)", "?"),
        ("Abs(odd)", [7, 7]),
        ("Abs(s)", ["n", "m", 3]),
        ("Abs(i)", ["?", "?"]),
        ("Relu(odd)", [0, 7]),
        ("Relu(s)", ["n", "m", 3]),
        ("Not(mask)", [False, True]),
        ("Not(b)", ["?", "?"]),
    ],
)
def test_arithmetic(call: str, expected: object) -> None:
    assert elements(call) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Max(v, three)", [5, 6, 7]),
        ("Max(one, two, v)", [5, 6, 7]),
        ("Min(v, three)", [3, 3, 3]),
        ("Min(v, two, one)", [1, 1, 1]),
        ("Max(s, minus)", ["n", "m", 3]),
        ("Min(s, minus)", [-1, -1, -1]),
        ("Max(s, two)", ["?", "?", 3]),
        ("Min(s, two)", ["?", "?", 2]),
        ("Max(i, one)", ["?", "?"]),
        ("Max(pair, i)", ["?", "?"]),
        ("Max(v, v)", [5, 6, 7]),
        ("Clip(v, , three)", [3, 3, 3]),
        ("Clip(odd, three)", [3, 7]),
        ("Clip(odd, back, three)", [-2, 3]),
        ("Clip(odd, three, back)", [-2, -2]),
        ("Clip(odd)", [-7, 7]),
        ("Clip(s, nought)", ["n", "m", 3]),
    ],
)
def test_extremes(call: str, expected: object) -> None:
    assert elements(call) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Equal(pair, corner)", [False, False]),
        ("Equal(v, v)", [True, True, True]),
        ("Greater(pair, one)", [False, True]),
        ("GreaterOrEqual(pair, two)", [False, True]),
        ("Less(pair, two)", [True, False]),
        ("LessOrEqual(pair, one)", [True, False]),
        ("GreaterOrEqual(s, nought)", [True, True, True]),
        ("GreaterOrEqual(nought, s)", ["?", "?", False]),
        ("Greater(s, nought)", ["?", "?", True]),
        ("LessOrEqual(s, minus)", [False, False, False]),
        ("And(mask, b)", ["?", False]),
        ("Or(mask, b)", [True, "?"]),
        ("And(mask, other)", [True, False]),
        ("Or(mask, mask)", [True, False]),
        ("And(b, b)", ["?", "?"]),
        ("And(b, other)", ["?", "?"]),
        ("And(other, b)", ["?", "?"]),
        ("Where(mask, pair, corner)", [1, 0]),
        ("Where(b, pair, corner)", ["?", "?"]),
        ("Where(b, pair, pair)", [1, 2]),
        ("Where(b, i, i)", ["?", "?"]),
        ("Where(mask, i, pair)", ["?", 2]),
    ],
)
def test_comparisons_and_choices(call: str, expected: object) -> None:
    assert elements(call) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("ConstantOfShape<value = int64[1] {7}>(two)", [7, 7]),
        ("ConstantOfShape<value = bool[1] {1}>(two)", [True, True]),
        ("ConstantOfShape<value = float[1] {7}>(two)", None),
        ("ConstantOfShape(two)", None),
        ("ConstantOfShape<value = int64[1] {7}>(i)", None),
        ("ConstantOfShape<value = int64[1] {7}>(none)", 7),
        ("Range(nought, three, three)", [0]),
        ("Range(three, nought, back)", [3, 1]),
        ("Range(nought, three, nought)", None),
        ("Range(nought, wide, three)", None),
    ],
)
def test_filled_and_counted_elements(call: str, expected: object) -> None:
    assert elements(call) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("ReduceSum(v)", [18]),
        ("ReduceSum<keepdims=0>(v)", 18),
        ("ReduceSum<keepdims=0>(v, minus)", 18),
        ("ReduceProd<keepdims=0>(grid, axes)", 24),
        ("ReduceProd(grid)", [[24]]),
        ("ReduceSum<keepdims=0>(grid, zero)", None),
        ("ReduceSum<keepdims=0>(i)", "?"),
        ("ReduceSum<keepdims=0>(p)", "?"),
        ("ReduceSum<keepdims=0>(w)", None),
        ("ReduceSum<keepdims=0>(many)", "?"),
        ("ReduceSum<keepdims=0>(more)", None),
        ("ReduceSum<keepdims=0>(none)", 0),
        ("ReduceProd<keepdims=0>(none)", 1),
        ("ReduceSum<noop_with_empty_axes=1>(v)", [5, 6, 7]),
        ("ReduceSum<noop_with_empty_axes=1>(v, none)", [5, 6, 7]),
        ("ReduceSum<noop_with_empty_axes=1, keepdims=0>(v, zero)", 18),
        ("ReduceSum<keepdims=0>(v, none)", 18),
        ("ReduceProd<keepdims=0>(s)", "3*m*n"),
    ],
)
def test_reductions_of_all_axes(call: str, expected: object) -> None:
    assert elements(call) == expected


@pytest.mark.parametrize(
    ("call", "opset", "expected"),
    [
        ("Squeeze<axes=[0]>(one)", 11, 1),
        ("Slice<starts=[1], ends=[3]>(v)", 9, [6, 7]),
        ("ReduceSum<axes=[0], keepdims=0>(v)", 11, 18),
        ("Unsqueeze<axes=[0]>(three)", 11, [3]),
    ],
)
def test_attributes_of_old_opsets_are_operands(call: str, opset: int, expected: object) -> None:
    assert elements(call, opset=opset) == expected


def test_unknown_operands_are_unknown_elements_if_they_are_few() -> None:
    assert elements("Concat<axis=0>(i, one)") == ["?", "?", 1]
    assert elements("Concat<axis=0>(w, one)") is None


def test_the_operators_that_read_only_types() -> None:
    assert {"Shape", "Size"} == OF_TYPES
