"""A mask that is baked for the batch: where it is equal for each sample, it serves any batch."""

import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself, changed
from tiered import ShapeError

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
