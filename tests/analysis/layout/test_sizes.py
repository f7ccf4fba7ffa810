"""The sizes of axes: those that are given, a default for the others, and bytes."""

import pytest

from tiered import Model, UsageError
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.graph.shape_inference.symbolic_dims import size_of_dim
from tiered.testing import parse

MODEL = "(float[N,3] x, int4[N,M,5] q) => (float[N,3] y) { y = Relu(x) }"


def _model() -> Model:
    return Model.from_proto(parse(MODEL))


def test_given_dims_and_a_default() -> None:
    model = _model()
    sizes = LayoutSizes.parse(["N=8"], 2, "a_pass", model)
    x, q = model.main.inputs
    assert (sizes.dims(x), sizes.dims(q)) == ((8, 3), (8, 2, 5))
    assert (sizes.nbytes(x), sizes.nbytes(q)) == (8 * 3 * 4, 8 * 2 * 5 // 2)


def test_half_a_byte_counts_as_one() -> None:
    q = _model().main.inputs[1]
    assert LayoutSizes({"N": 1, "M": 1}).nbytes(q) == 3


@pytest.mark.parametrize("entry", ["N", "=8", "N=", "N=abc", "N=-1", "N=1.5"])
def test_an_entry_that_is_no_size_is_named(entry: str) -> None:
    with pytest.raises(UsageError, match=f"a_pass: a size is name=size, not '{entry}'"):
        LayoutSizes.parse([entry], 2, "a_pass", _model())


def test_a_dim_that_no_input_has_is_named_with_those_that_are_there() -> None:
    for text, dims in (
        (MODEL, "it has N, M"),
        ("(float[2] x) => (float[2] y) { y = Neg(x) }", "all of them have sizes or no names"),
        ("(float[] u, float[N,2,?] x) => (float[] y) { y = Neg(u) }", "it has N"),
    ):
        with pytest.raises(UsageError) as caught:
            LayoutSizes.parse(["K=1"], 2, "a_pass", Model.from_proto(parse(text)))
        said = f"a_pass: no input of the model has a dim 'K'; {dims}"
        assert str(caught.value) == said


def test_unknown_dims_and_strings_have_a_size() -> None:
    model = Model.from_proto(parse("(string[2,?] t, float[?] x) => (y) { y = Neg(x) }"))
    t, x = model.main.inputs
    sizes = LayoutSizes(default=5)
    assert (sizes.dims(t), sizes.dims(x), sizes.nbytes(x)) == ((2, 5), (5,), 20)
    assert sizes.nbytes(t) == 10 * 8
    assert [sizes._size(each) for each in (None, 7, size_of_dim("N"))] == [5, 7, 5]


def test_a_value_of_unknown_rank_has_no_sizes() -> None:
    model = Model.from_proto(parse("(float x) => (y) { y = local.f(x) }"))
    y = model.main.outputs[0]
    assert LayoutSizes().known_dims(y) is None
