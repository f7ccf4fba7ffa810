"""Which constants are weights, along which axis they have channels, and why others are none."""

import pytest

from tests.small import named, parsed
from tiered.numerics.precision.few_bits.formats import int8_format
from tiered.numerics.precision.few_bits.readers import nodes_of, readers_in, refusal_of

IMAGE = "(float[1,2,4] x) => (float[1,A,B] y)"
ROWS = "(float[2,4] x, int64[3] i) => (float[A,B] y)"


@pytest.mark.parametrize(
    ("head", "weight", "nodes", "place", "channel"),
    [
        (IMAGE, "float[3,2,1] w = {1,2,3,4,5,6}", "y = Conv(x, w)", 1, 0),
        (IMAGE, "float[2,3,1] w = {1,2,3,4,5,6}", "y = ConvTranspose(x, w)", 1, 1),
        (ROWS, "float[4,2] w = {1,2,3,4,5,6,7,8}", "y = MatMul(x, w)", 1, 1),
        (ROWS, "float[1,2] w = {1,2}", "y = MatMul(w, x)", 0, 0),
        (ROWS, "float[4,2] w = {1,2,3,4,5,6,7,8}", "y = Gemm(x, w)", 1, 1),
        (ROWS, "float[2,4] w = {1,2,3,4,5,6,7,8}", "y = Gemm<transB = 1>(x, w)", 1, 0),
        (ROWS, "float[4,2] w = {1,2,3,4,5,6,7,8}", "y = Gather(w, i)", 0, 0),
        (ROWS, "float[4,2] w = {1,2,3,4,5,6,7,8}", "y = Gather<axis = -1>(w, i)", 0, 1),
        (ROWS, "float[1,4,2] w = {1,2,3,4,5,6,7,8}", "y = MatMul(x, w)", 1, 2),
        (ROWS, "float[2,4] w = {1,2,3,4,5,6,7,8}",
         "t = Transpose(w)  y = MatMul(x, t)", 0, 0),
    ],
)  # fmt: skip
def test_a_weight_has_channels_along_an_axis(
    head: str, weight: str, nodes: str, place: int, channel: int
) -> None:
    model = parsed(f"{head} <{weight}> {{ {nodes} }}")
    found, unfit = readers_in(model)
    (reader,) = found[named(model, "w")]
    assert (reader.place, reader.channel) == (place, channel)
    assert unfit == {}
    names = [node.op_type for node in nodes_of([reader])]
    assert names == (["Transpose", "MatMul"] if "t = Transpose" in nodes else [reader.node.op_type])


@pytest.mark.parametrize(
    ("head", "weight", "nodes", "because"),
    [
        (ROWS.replace("float", "double"), "double[4,2] w = {1,2,3,4,5,6,7,8}", "y = MatMul(x, w)",
         "a weight of double has no form in few bits"),
        (ROWS, "float[4] w = {1,2,3,4}", "y = MatMul(x, w)",
         "a weight of 1 dims has no form in few bits"),
        (ROWS, "float[2,1] v = {1,2}, float[1,2] w = {1,2}", "y = MatMul(v, w)",
         "all that it reads is constant"),
    ],
)  # fmt: skip
def test_a_weight_without_a_form_is_named(head: str, weight: str, nodes: str, because: str) -> None:
    found, unfit = readers_in(parsed(f"{head} <{weight}> {{ {nodes} }}"))
    assert found == {}
    (reason,) = unfit.values()
    assert because in reason


@pytest.mark.parametrize(
    "nodes",
    [
        "t = Transpose(w)  y = Add(t, t)",
        "t = Transpose(w)  y = MatMul(t, x)",
        "y = Add(x, w)",
    ],
)
def test_what_no_product_multiplies_by_is_no_weight(nodes: str) -> None:
    found, _ = readers_in(parsed(f"{ROWS} <float[2,4] w = {{1,2,3,4,5,6,7,8}}> {{ {nodes} }}"))
    assert found == {}


@pytest.mark.parametrize(
    ("more", "least", "because"),
    [
        ("", 0, ""),
        ("", 65, "a small weight"),
        ("  z = Relu(w)", 0, "another node reads the weight as it is"),
    ],
)
def test_why_a_weight_stays(more: str, least: int, because: str) -> None:
    numbers = ",".join(["1"] * 64)
    outputs = "float[A,B] y, float[8,8] z" if more else "float[A,B] y"
    model = parsed(
        f"(float[2,8] x) => ({outputs}) <float[8,8] w = {{{numbers}}}> {{ y = MatMul(x, w){more} }}"
    )
    value = named(model, "w")
    uses = readers_in(model)[0][value]
    assert refusal_of(value, uses, int8_format(0), least) == because
