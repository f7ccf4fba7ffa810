"""Values that are equal for each sample, as a mask that is baked for the batch: it serves any."""

import numpy as np
import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself, changed
from tests.small import named, parsed
from tiered import ShapeError, Value
from tiered.analysis.batching import uniform_values
from tiered.analysis.batching.sample_facts import BatchRows, Sizes
from tiered.analysis.batching.uniform_values import Uniformity, by_sample

SIZES = pytest.mark.parametrize("size", [1, 4, "N"])

FLAT = """(float[2,3] x) => (float[2,3] y)
    <float[2,3] m = {{{mask}}}, int64 zero = {{0}}, int64 one = {{1}}, int64 three = {{3}}, int64[1] after = {{1}},
    int64[1] ahead = {{0}}> {{
    s = Shape(x)  n = Gather(s, zero)  r = Range(zero, n, one)  t = Mul(r, three)  c = Unsqueeze(t, after)
    k = Range(zero, three, one)  j = Unsqueeze(k, ahead)  i = Add(c, j)
    f = Flatten<axis = 2>(m)  h = Squeeze(f, after)  p = Gather(h, i)  y = Mul(x, p) }}"""
"""A mask of which the rows of each sample are taken, as exports of torch.jit write it."""

PLACES = """(float[2,3] x) => (float[2,3] y)
    <float[2,3] m = {{{mask}}}, int64 zero = {{0}}, int64 one = {{1}}, int64 three = {{3}}, int64[1] after = {{-1}},
    int64[2] wide = {{1,3}}, int64[2] long = {{1,1}}> {{
    s = Shape(x)  n = Gather(s, zero)  r = Range(zero, n, one)  c = Unsqueeze(r, after)  e = Expand(c, s)
    k = Range(zero, three, one)  j = Reshape(k, wide)  o = Expand(j, s)
    a = Unsqueeze(e, after)  b = Unsqueeze(o, after)  i = Concat<axis = -1>(a, b)  p = GatherND(m, i)  y = Mul(x, p) }}"""

TARGET = """(float[2,3] x) => (float[2,3] y)
    <float[{rows}] m = {{{mask}}}, int64[1] zero = {{0}}, int64[1] rest = {{-1}}> {{
    s = Shape(x)  n = Gather(s, zero)  t = Concat<axis = 0>(n, rest)  p = Reshape(m, t)  y = Mul(x, p) }}"""
"""A Reshape to [the batch, -1], as exports of GPT-2 have it."""

COMPUTED = """(float[2,3] x) => (float[2,3] y)
    <float[2,3] m = {{{mask}}}, float[2,1,3] u = {{{mask}}}, int64[1] one = {{1}}, int64 last = {{1}}> {{
    v = Squeeze(u, one)  w = CumSum(v, last)  q = Softmax(m)  p = Mul(w, q)  y = Add(x, p) }}"""
"""Constants that operators compute which no rule follows backwards."""

EQUAL, DIFFERENT = "1, 0, 1, 1, 0, 1", "1, 0, 1, 1, 1, 1"
FORMS = {
    "flat": FLAT.format(mask=EQUAL),
    "places": PLACES.format(mask=EQUAL),
    "target": TARGET.format(mask=EQUAL, rows="2,3"),
    "target of a vector": TARGET.format(mask=EQUAL, rows="6"),
    "computed": COMPUTED.format(mask=EQUAL),
}


@SIZES
@pytest.mark.parametrize("form", FORMS)
def test_equal_rows_serve_any_batch(form: str, size: int | str) -> None:
    assert_each_by_itself(FORMS[form], size, label=form)


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_differ_are_named(form: str) -> None:
    text = FORMS[form].replace(EQUAL, DIFFERENT)
    with pytest.raises(ShapeError, match=r"bakes the batch of 2: it (has|may have) other numbers"):
        changed(text, 4)


def test_rows_that_no_sample_has_are_named() -> None:
    text = """(float[2,3] x) => (float[2,3] y)
        <float[2,3] m = {1,1,1,1,1,1}, int64[1] zero = {0}, int64[1] three = {3}> {
        s = Shape(x)  n = Gather(s, zero)  t = Concat<axis = 0>(three, n)  p = Reshape(m, t)
        q = Transpose(p)  y = Mul(x, q) }"""
    with pytest.raises(ShapeError, match="baked into its constant 't': no axis has whole samples"):
        changed(text, 4)


# --- what follows from the operators --------------------------------------------------------------


def holds(text: str, rows: BatchRows, old: int = 2, of: str = "v") -> bool:
    """Return whether a value is known to be equal for each sample."""
    model = parsed(text)

    def sizes(value: Value) -> Sizes:
        assert value.shape is not None
        return tuple([model.dims.size(dim) for dim in value.shape])

    return Uniformity(old, sizes).holds(named(model, of), rows)


HEAD = """(float[3] a, float[1,3] b, float[2,3] c, float[3,2] d, bool[2,3] q, float[4,1,3] g) => (float[A,B] y)
    <float[2,3] same = {1,2,3,1,2,3}, float[2,3] other = {1,2,3,1,2,4}, float[3,2] columns = {1,1,2,2,3,3},
    float[6] flat = {1,2,3,1,2,3}, int64[2] s = {2,3}, int64[2] once = {0,0}, int64[2] twice = {0,1},
    int64[1] six = {6}, int64[2,2] square = {0,1,1,0}, int64[3] cube = {4,2,3},
    int64 zero = {0}> """


@pytest.mark.parametrize(
    ("line", "rows", "is_equal"),
    [
        # constants
        ("Identity(same)", BatchRows(0), True),
        ("Identity(other)", BatchRows(0), False),
        ("Identity(columns)", BatchRows(1), True),
        ("Identity(flat)", BatchRows(0, 1, 3), True),
        ("Identity(flat)", BatchRows(0, 3, 1), False),
        # elementwise operators
        ("Neg(c)", BatchRows(0), False),
        ("Add(a, same)", BatchRows(0), True),
        ("Add(a, b)", BatchRows(0), True),
        ("Add(a, c)", BatchRows(0), False),
        ("Add(c, a)", BatchRows(0), False),
        ("Add(same, same)", BatchRows(0), True),
        ("Add(same, other)", BatchRows(0), False),
        # movement
        ("Expand(a, s)", BatchRows(0), True),
        ("Expand(b, s)", BatchRows(0), True),
        ("Expand(c, s)", BatchRows(0), False),
        ("Tile(b, s)", BatchRows(0), True),
        ("ConstantOfShape(s)", BatchRows(0), True),
        ("Transpose(columns)", BatchRows(0), True),
        ("Transpose(d)", BatchRows(0), False),
        ("Reshape(flat, s)", BatchRows(0), True),
        ("Reshape(c, s)", BatchRows(0), False),
        ("Gather(c, once)", BatchRows(0), True),
        ("Gather(c, twice)", BatchRows(0), False),
        ("Gather<axis=1>(same, twice)", BatchRows(0), True),
        ("Gather<axis=1>(c, once)", BatchRows(0), False),
        ("Gather<axis=-1>(c, once)", BatchRows(1), True),
        ("Gather(columns, once)", BatchRows(1), True),
        ("Gather(d, once)", BatchRows(1), False),
        # of an input that is repeated
        ("Neg(e)", BatchRows(0), True),
        ("Cast<to=10>(e)", BatchRows(0), True),
        ("Transpose(e)", BatchRows(1), True),
        ("Transpose(c)", BatchRows(1), False),
        ("Flatten<axis=0>(e)", BatchRows(1, 1, 3), True),
        ("Reshape(e, six)", BatchRows(0, 1, 3), True),
        ("Reshape(c, six)", BatchRows(0, 1, 3), False),
        ("Gather<axis=1>(e, twice)", BatchRows(0), True),
        ("Gather(u, twice)", BatchRows(1), True),
        ("Gather(d, twice)", BatchRows(1), False),
        ("Gather(u, square)", BatchRows(2), True),
        ("Gather(c, square)", BatchRows(1), False),
        ("Add(e, a)", BatchRows(0), True),
        ("Tile(c, s)", BatchRows(0, 2, 1), False),
        # others
        ("acme.Neg(same)", BatchRows(0), False),
        ("Softmax(same)", BatchRows(0), True),
        ("Softmax(other)", BatchRows(0), False),
        ("Softmax(branch)", BatchRows(0), False),
        ("Concat<axis=0>(sum, sum)", BatchRows(0), False),
        ("Concat<axis=0>(sum, sum)", BatchRows(1), False),
        ("Tile(short, two)", BatchRows(0, 1, 2), True),
        ("RandomNormalLike(same)", BatchRows(0), False),
        ("RandomNormal<shape=[2,3]>()", BatchRows(0), False),
        ("Gather(w, zero)", BatchRows(0), True),
        ("Gather<axis=1>(w, zero)", BatchRows(0), False),
    ],
)
def test_what_is_equal_for_each_sample(line: str, rows: BatchRows, is_equal: bool) -> None:
    given = """e = Expand(a, s)  u = Transpose(e)  w = Expand(g, cube)
        short = Constant<value_floats=[1.0, 1.0]>()  two = Constant<value_ints=[2]>()
        z = NonZero(same)  sum = ReduceSum<keepdims=1>(z, six)  yes = Constant<value_ints=[1]>()
        cond = Cast<to=9>(yes)
        branch = If(cond) <then_branch = t () => (float[2,3] p) { p = Neg(same) },
                        else_branch = f () => (float[2,3] q) { q = Abs(same) }>"""
    text = f"{HEAD.replace('float[A,B] y', 'float[A,B] v')}{{ {given}  v = {line} }}"
    assert holds(text, rows) == is_equal


def test_only_small_constants_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{HEAD.replace('float[A,B] y', 'float[A,B] v')}{{ v = Softmax(same) }}"
    assert uniform_values._LARGEST == 1 << 22
    for largest, is_known in ((6, True), (5, False)):
        monkeypatch.setattr(uniform_values, "_LARGEST", largest)
        assert holds(text, BatchRows(0)) == is_known


def test_the_only_sample_is_equal_to_itself() -> None:
    assert holds("(float[1,3] x) => (float[1,3] v) { v = Neg(x) }", BatchRows(0), 1)
    assert not holds("(float[2,3] x) => (float[2,3] v) { v = Neg(x) }", BatchRows(0))


def test_an_input_may_differ() -> None:
    text = "(float[2,3] v) => (float[2,3] y) { y = Neg(v) }"
    assert not holds(text, BatchRows(0))


def test_a_constant_differs_by_its_bits() -> None:
    text = "(float[2] x) => (float[2] y) <float[2] v = {NUMBERS}> { y = Add(x, v) }"
    assert holds(text.replace("NUMBERS", "nan, nan"), BatchRows(0))
    assert not holds(text.replace("NUMBERS", "0, -0.0"), BatchRows(0))


def test_parts_of_an_array_are_by_sample() -> None:
    array = np.arange(24).reshape(2, 12)
    parts = by_sample(array, BatchRows(1, 2, 3), 2)
    assert [part.shape for part in parts] == [(2, 2, 3)] * 2
    np.testing.assert_array_equal(parts[0][0], [[0, 1, 2], [6, 7, 8]])
    np.testing.assert_array_equal(parts[1][1], [[15, 16, 17], [21, 22, 23]])
