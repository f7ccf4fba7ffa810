"""Which constants are weights, along which axis they have channels, and why others are none."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.small import made_by, named, parsed
from tiered import DataType, Model
from tiered.numerics.precision.few_bits.exponents import Exponents
from tiered.numerics.precision.few_bits.formats import (
    WeightFormat,
    float8_format,
    int4_format,
    int8_format,
)
from tiered.numerics.precision.few_bits.readers import nodes_of, readers_in, refusal_of
from tiered.testing import parse

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
        (ROWS, "float[2,4] w = {1,2,3,4,5,6,7,8}",
         "t = Transpose(w)  y = Gemm(x, t)", 0, 0),
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
    product = "Gemm" if "Gemm" in nodes else "MatMul"
    assert names == (["Transpose", product] if "t = Transpose" in nodes else [reader.node.op_type])


@pytest.mark.parametrize(
    ("head", "weight", "nodes", "because"),
    [
        (ROWS.replace("float", "double"), "double[4,2] w = {1,2,3,4,5,6,7,8}", "y = MatMul(x, w)",
         "a weight of double has no form in few bits"),
        (ROWS, "float[4] w = {1,2,3,4}", "y = MatMul(x, w)",
         "a weight of 1 dim has no form in few bits"),
        (ROWS, "float[1,1,2] w = {1,2}", "y = MatMul(w, x)",
         "a weight of 3 dims has no form in few bits"),
        (ROWS, "float[4,2,1] w = {1,2,3,4,5,6,7,8}", "y = Gather(w, i)",
         "a weight of 3 dims has no form in few bits"),
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
        "t = Transpose<perm = [0,1]>(w)  a = Reshape(x, s)  y = MatMul(a, t)",
        "t = Transpose(w)  a = Add(x, t)  y = MatMul(x, t)",
        "t = Transpose(square)  y = MatMul(t, t)",
        "t = Transpose(square)  a = Reshape(x, s)  y = Gemm(x, a, t)",
        "t = Transpose(w)  y = Neg(x)",
        "y = Gemm<transA = 1>(w, x)",
        "y = vendor.MatMul(x, w)",
        "y = Gather(ints, i)",
        "t = Transpose(double)  a = Cast<to = 11>(x)  y = MatMul(a, t)",
        "t = Transpose(cube)  y = MatMul(x, t)",
        "y = Add(x, w)",
    ],
)
def test_what_no_product_multiplies_by_is_no_weight(nodes: str) -> None:
    model = parsed(
        f"""<ir_version: 10, opset_import: ["": 21, "vendor": 1]> g {ROWS}
        <float[2,4] w = {{1,2,3,4,5,6,7,8}}, int64[2,1] ints = {{1,2}}, int64[2] s = {{4,2}},
        double[2,4] double = {{1,2,3,4,5,6,7,8}}, float[1,4,1] cube = {{1,2,3,4}},
        float[2,2] square = {{1,2,3,4}}> {{ {nodes} }}"""
    )
    assert readers_in(model) == ({}, {})


def test_a_sparse_weight_has_no_form() -> None:
    proto = parse(f"{ROWS} {{ y = MatMul(x, w) }}")
    values = numpy_helper.from_array(np.array([5], np.float32), "w")
    indices = numpy_helper.from_array(np.array([1]))
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [4, 2]))
    model = Model.from_proto(proto)
    assert readers_in(model) == ({}, {made_by(model, "y"): "the weight is sparse"})


def test_a_transposed_table_that_is_an_output_is_no_weight() -> None:
    model = parsed(
        "(float[2,4] x) => (float[A,B] y, float[A,B] t) <float[2,4] w = {1,2,3,4,5,6,7,8}>"
        " { t = Transpose<perm = [1,0]>(w)  y = MatMul(x, t) }"
    )
    assert readers_in(model)[0] == {}


@pytest.mark.parametrize(
    ("more", "least", "because"),
    [
        ("", 0, ""),
        ("", 64, ""),
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


def why_it_stays(text: str, form: WeightFormat, least: int = 0, opset: int = 21) -> str:
    model = parsed(text, opset=opset)
    value = named(model, "w")
    return refusal_of(value, readers_in(model)[0][value], form, least)


ONES = ",".join(["1"] * 64)
HALVES = (
    f"(float16[2,8] x) => (float16[A,B] y) <float16[8,8] w = {{{ONES}}}> {{ y = MatMul(x, w) }}"
)


@pytest.mark.parametrize(
    ("text", "form", "opset", "because"),
    [
        (HALVES, int8_format(0), 18, "scales of float16 need opset 19"),
        (HALVES, int8_format(0), 19, ""),
        (HALVES.replace("float16", "float"), int8_format(0), 18, ""),
        (
            HALVES.replace("float16", "float").replace("y)", "y, float[8,8] w)"),
            int8_format(0),
            21,
            "another node reads the weight as it is",
        ),
        (
            f"(float[1,8,4] x) => (float[1,A,B] y) <float[8,8,1] w = {{{ONES}}}>"
            " { y = ConvTranspose(x, w) }",
            int8_format(4),
            21,
            "no blocks along the channels of a ConvTranspose",
        ),
        (
            f"(float[1,8,4] x) => (float[1,A,B] y) <float[8,8,1] w = {{{ONES}}}>"
            " { y = ConvTranspose(x, w) }",
            int8_format(0),
            21,
            "",
        ),
        (
            f"(float[1,8,4] x) => (float[1,A,B] y) <float[8,8,1] w = {{{ONES}}}>"
            " { y = Conv(x, w) }",
            int8_format(4),
            21,
            "",
        ),
        (
            "(float[2,1] x) => (float[A,B] y) <float[1,8] w = {1,2,3,4,5,6,7,8}> {"
            " y = MatMul(x, w) }",
            int8_format(0),
            21,
            "not smaller",
        ),
        (
            "(float[2,2] x) => (float[A,B] y) <float[2,8] w = {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}> {"
            " y = MatMul(x, w) }",
            int8_format(0),
            21,
            "",
        ),
        (
            "(float[2,0] x) => (float[A,B] y) <float[0,8] w = {}> { y = MatMul(x, w) }",
            int8_format(0),
            21,
            "a small weight",
        ),
    ],
)
def test_a_weight_stays_where_few_bits_have_no_form_or_are_more(
    text: str, form: WeightFormat, opset: int, because: str
) -> None:
    assert why_it_stays(text, form, opset=opset) == because


def test_readers_of_one_weight_have_one_exponent() -> None:
    numbers = HALVES.replace("float16", "float")
    text = numbers.replace("y = MatMul(x, w)", "a = MatMul(x, w)  y = MatMul(a, w)")
    last = made_by(parsed(text), "y").label
    for entries, because in (([], ""), ([f"{last}=3"], "its readers have different exponents")):
        form = float8_format(DataType.FLOAT8E4M3FN, Exponents.of(2, entries))
        assert why_it_stays(text, form) == because


def test_a_weight_in_a_body_of_a_local_function_is_not_read() -> None:
    model = parsed(
        """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2,2] x, bool c) => (float[2,2] y) { y = own.F(c, x) }
        <domain: "own", opset_import: ["" : 9]> F (k, a) => (b) { b = If(k) <
            then_branch = t () => (float[2,2] p) <float[2,2] w = {1,2,3,4}> { p = MatMul(a, w) },
            else_branch = e () => (float[2,2] q) { q = Neg(a) }> }"""
    )
    assert readers_in(model) == ({}, {})


def test_a_weight_that_callers_may_feed_is_none() -> None:
    feed = "`tiered optimize --require remove_initializer_from_input` makes a constant of it"
    for nodes, reasons in (
        ("y = MatMul(x, w)", [f"the weight is an input, which callers may feed: {feed}"]),
        ("t = Transpose(w)  y = MatMul(x, t)", []),
    ):
        model = parsed(
            "(float[2,4] x, float[4,2] w) => (float[A,B] y) "
            f"<float[4,2] w = {{1,2,3,4,5,6,7,8}}> {{ {nodes} }}"
        )
        found, unfit = readers_in(model)
        assert (found, [*unfit.values()]) == ({}, reasons)


def test_a_weight_is_small_or_not_smaller_up_to_a_size() -> None:
    def because(shape: str, least: int, form: WeightFormat, dtype: str = "float") -> str:
        rows, columns = map(int, shape.split(","))
        ones = ",".join("1" * (rows * columns))
        model = parsed(
            f"({dtype}[2,{rows}] x) => ({dtype}[2,{columns}] y) <{dtype}[{shape}] w = {{{ones}}}> "
            "{ y = MatMul(x, w) }"
        )
        ((value, uses),) = readers_in(model)[0].items()
        return refusal_of(value, uses, form, least)

    small, eight = "a small weight", int8_format(0)
    assert [because("8,4", least, eight) for least in (32, 33)] == ["", small]
    assert because("1,1", 0, eight) == "not smaller"
    # 8 bits and a scale of 36 for each column, instead of 32: two rows take 52 instead of 64.
    assert [because(shape, 1, eight) for shape in ("1,4", "2,4")] == ["not smaller", ""]
    four = int4_format(4)
    assert [because(shape, 1, four) for shape in ("1,4", "2,4")] == ["not smaller", ""]
    # 4 bits, and three scales of 20 for each column, instead of five halves.
    halves = "float16"
    assert [because(shape, 1, int4_format(2), halves) for shape in ("5,4", "6,4")] == [
        "not smaller",
        "",
    ]
