"""What schemas allow for each operand, and dtypes that are known without inference."""

import pytest

from tests.small import made_by, named, parsed
from tiered.graph import DataType
from tiered.graph.core.schema import schema_of
from tiered.graph.core.value import NOT_INFERRED
from tiered.graph.queries.formals import (
    dtype_name,
    dtype_names,
    formal_of,
    known_dtype,
    output_formal_of,
    takes_dtype,
)


def formal(op_type: str, place: int) -> tuple[str, str, bool]:
    schema = schema_of(op_type, "", 21)
    assert schema is not None
    found = formal_of(schema, place)
    return found.name, found.parameter, found.is_optional


@pytest.mark.parametrize(
    ("op_type", "place", "expected"),
    [
        ("Conv", 0, ("X", "T", False)),
        ("Conv", 2, ("B", "T", True)),
        ("Concat", 7, ("inputs", "T", False)),
        ("Gather", 1, ("indices", "Tind", False)),
        ("Loop", 2, ("v_initial", "V of operand 2", False)),
        ("Loop", 3, ("v_initial", "V of operand 3", False)),
    ],
)
def test_further_operands_are_those_of_the_last_one(
    op_type: str, place: int, expected: tuple[str, str, bool]
) -> None:
    assert formal(op_type, place) == expected


def test_only_dense_tensors_count() -> None:
    schema = schema_of("Optional", "", 21)
    assert schema is not None
    assert DataType.FLOAT in formal_of(schema, 0).dtypes
    assert dtype_names(output_formal_of(schema, 0)) == "no dense tensor"
    dropout = schema_of("Dropout", "", 21)
    assert dropout is not None
    assert [output_formal_of(dropout, place).parameter for place in (0, 1)] == ["T", "T2"]
    equal = schema_of("Equal", "", 21)
    assert equal is not None
    assert dtype_names(output_formal_of(equal, 0)) == "bool"
    assert dtype_name(DataType.BFLOAT16) == "bfloat16"


TEXT = """<ir_version: 10, opset_import: ["" : 21, "vendor" : 1]> g
    (float16[2] x, int64[2] i, bool p) => (float16[2] y) <double[2] w = {1,2}> {
    a = Neg(x)  b = Abs(a)  c = Constant<value_int = 3>()  d = Cast<to = 7>(b)  e = Equal(d, i)
    f = vendor.Any(x)  g = Neg(f)  h = Gather(w, i)  k, l = TopK(b, i)  m = Shape(f)
    y = If(p) <then_branch = t () => (float16[2] u) { u = Neg(x) },
               else_branch = o () => (float16[2] v) { v = Abs(x) }> }"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x", DataType.FLOAT16),
        ("b", DataType.FLOAT16),
        ("w", DataType.DOUBLE),
        ("h", DataType.DOUBLE),
        ("c", DataType.INT64),
        ("d", DataType.INT64),
        ("e", DataType.BOOL),
        ("k", DataType.FLOAT16),
        ("l", DataType.INT64),
        ("m", DataType.INT64),
        ("f", None),
        ("g", None),
    ],
)
def test_a_dtype_is_followed_up_to_what_declares_it(name: str, expected: int | None) -> None:
    assert known_dtype(named(parsed(TEXT), name)) == expected


def test_a_long_way_up_is_not_followed() -> None:
    nodes = " ".join(f"v{at + 1} = Neg(v{at})" for at in range(50))
    model = parsed(f"(float[2] v0) => (float[2] v50) {{ {nodes} }}")
    assert known_dtype(named(model, "v20")) == DataType.FLOAT
    assert known_dtype(named(model, "v45")) is None


def test_a_way_of_31_nodes_is_followed() -> None:
    nodes = " ".join(f"v{at + 1} = Neg(v{at})" for at in range(40))
    model = parsed(f"(float[2] v0) => (float[2] v40) {{ {nodes} }}")
    found = [known_dtype(named(model, f"v{at}")) for at in (31, 32)]
    assert found == [DataType.FLOAT, None]


def test_dtypes_that_nothing_declares() -> None:
    model = parsed(
        """<ir_version: 10, opset_import: ["" : 21, "vendor" : 1]> g (float[2] x) => (float[2] y) {
        a = vendor.Cast<to = 7>(x)  b = vendor.Constant<value_int = 3>()  o = OptionalGetElement(x)
        n = Constant<value_int = 0>()  s = SequenceConstruct(x)  t = SequenceAt(s, n)
        l, m = Loop(n, , x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) {
            d = Identity(c)  w = Neg(v) }>
        c = Clip(x)  y = vendor.F(a, b) }"""
    )
    names = ("a", "b", "s", "t", "l", "c", "y")
    assert [known_dtype(named(model, name)) for name in names] == [*[None] * 5, 1, None]
    relu = made_by(model, "c")
    model.main.set_input(relu, 0, None)
    named(model, "c")._type = NOT_INFERRED
    assert known_dtype(named(model, "c")) is None


def test_dtypes_that_the_first_operand_takes() -> None:
    for opset, dtype, expected in (
        (21, DataType.FLOAT, True), (13, DataType.BFLOAT16, True), (6, DataType.BFLOAT16, False),
        (21, DataType.UINT4, False), (21, None, False),
    ):  # fmt: skip
        graph = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }", opset=opset).main
        assert takes_dtype(graph, "Neg", dtype) is expected
        assert not takes_dtype(graph, "Unknown", dtype)
