"""Facts about a model as plain data: the values of `tiered inspect --json`."""

from pathlib import Path

import onnx
import pytest

from tests.small import loaded_apart, parsed
from tiered import Model
from tiered.cli.facts import (
    IntegerTensor,
    Port,
    StoredTensor,
    Taken,
    Weights,
    declared_types,
    gather_facts,
)
from tiered.targets import get_backend
from tiered.testing import parse

PLAIN = "(float[2] x) => (float[2] y) { y = Relu(x) }"


def test_a_plain_model_has_little_to_tell() -> None:
    model = parsed(PLAIN)
    facts = gather_facts(model, "m.onnx")
    assert (facts.file, facts.producer, facts.ir_version) == ("m.onnx", "", model.ir_version)
    assert facts.opsets == {"ai.onnx": 21}
    assert facts.inputs == [Port("x", "float[2]")]
    assert facts.outputs == [Port("y", "float[2]")]
    assert (facts.nodes, facts.typed, facts.values) == (1, 2, 2)
    assert facts.operators == {"main": {"Relu": 1}, "bodies": {}, "functions": {}}
    assert facts.weights == Weights(0, 0, 0, {})
    assert (facts.functions, facts.tensors, facts.overridable, facts.integers) == ([], [], [], [])
    assert (facts.dynamic_dims, facts.metadata, facts.complaint, facts.backend) == (
        {},
        {},
        "",
        None,
    )


@pytest.mark.parametrize(
    ("name", "version", "producer"),
    [("torch", "2.1", "torch 2.1"), ("torch", "", "torch"), ("", "2.1", "2.1")],
)
def test_the_producer_has_a_name_and_a_version(name: str, version: str, producer: str) -> None:
    proto = parse(PLAIN)
    proto.producer_name, proto.producer_version = name, version
    proto.metadata_props.add(key="author", value="somebody")
    facts = gather_facts(Model.from_proto(proto), "m.onnx")
    assert (facts.producer, facts.metadata) == (producer, {"author": "somebody"})


@pytest.mark.parametrize(
    ("outputs", "ports"),
    [
        ("float[batch,4] y", Port("y", "float[batch,4]")),
        ("y", Port("y", "", "float[batch,4]")),
        ("float[a,4] y", Port("y", "float[a,4]", "float[batch,4]")),
        ("float[?,?] y", Port("y", "float[?,?]", "float[batch,4]")),
    ],
)
def test_an_inferred_type_is_told_where_it_says_more(outputs: str, ports: Port) -> None:
    model = parsed(f"(float[batch,4] x) => ({outputs}) {{ y = Relu(x) }}")
    assert gather_facts(model, "m").outputs == [ports]


def test_a_declared_dim_counts_if_no_size_is_inferred() -> None:
    text = "(float[n,4] x, bool[n] k) => (float[kept,4] y) { y = Compress<axis=0>(x, k) }"
    assert gather_facts(parsed(text), "m").outputs == [Port("y", "float[kept,4]")]
    unnamed = gather_facts(parsed(text.replace("kept", "?")), "m").outputs
    assert unnamed == [Port("y", "float[?,4]")]
    undeclared = gather_facts(parsed(text.replace("float[kept,4] y", "y")), "m").outputs
    assert undeclared == [Port("y", "", "float[?,4]")]


def test_dynamic_dims_have_their_places() -> None:
    text = "(float[n,4,m] x, int64[m] i, float[?] q, float s) => (float[n,4,m] y) { y = Add(x, s) }"
    dims = gather_facts(parsed(text), "m").dynamic_dims
    assert dims == {"n": ["x[0]"], "m": ["x[2]", "i[0]"], "?": ["q[0]"]}


NESTED = """<ir_version: 10, opset_import: ["" : 21, "l" : 1, "com.microsoft" : 1]>
g (float[2] x, bool c, float[2] d) => (float[2] y) <float[2] w = {1,2}, float[2] d = {0,0}> {
    a = Add(x, w)  b = Add(a, d)  i = If (c) <
        then_branch = t () => (float[2] p) { k = Constant<value = int64[2] {3, 4}>()
            f = Cast<to=1>(k)  p = Add(b, f) },
        else_branch = e () => (float[2] q) { q = Neg(b) }>
    y = l.Twice(i) }
<domain: "l", opset_import: ["" : 21, "com.microsoft" : 1]> Twice (a) => (b) { c = com.microsoft.Gelu(a)  b = Neg(c) }"""  # noqa: E501  # one model


def test_operators_are_counted_where_they_are_the_most_frequent_first() -> None:
    facts = gather_facts(Model.from_proto(onnx.parser.parse_model(NESTED)), "m")
    assert facts.nodes == 10
    assert facts.operators == {
        "main": {"Add": 2, "If": 1, "l::Twice": 1},
        "bodies": {"Add": 1, "Cast": 1, "Constant": 1, "Neg": 1},
        "functions": {"Neg": 1, "com.microsoft::Gelu": 1},
    }
    assert [list(counts) for counts in facts.operators.values()] == [
        ["Add", "If", "l::Twice"],
        ["Add", "Cast", "Constant", "Neg"],
        ["Neg", "com.microsoft::Gelu"],
    ]
    assert facts.functions == ["l::Twice"]
    assert facts.overridable == ["d"]
    assert [port.overridable for port in facts.inputs] == [False, False, True]


def test_weights_are_counted_by_dtype_and_listed_by_size() -> None:
    facts = gather_facts(Model.from_proto(onnx.parser.parse_model(NESTED)), "m")
    assert facts.weights == Weights(
        3, 6, 32,
        {"float": {"tensors": 2, "elements": 4, "bytes": 16},
         "int64": {"tensors": 1, "elements": 2, "bytes": 16}},
    )  # fmt: skip
    assert facts.tensors == [
        StoredTensor("k", "int64[2]", 16, False),
        StoredTensor("d", "float[2]", 8, False),
        StoredTensor("w", "float[2]", 8, False),
    ]


def test_external_weights_are_marked(tmp_path: Path) -> None:
    model = loaded_apart(
        parse("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }"), tmp_path
    )
    assert gather_facts(model, "m").tensors == [StoredTensor("w", "float[2]", 8, True)]


def test_a_function_with_an_overload_is_named_whole() -> None:
    proto = onnx.parser.parse_model(NESTED)
    proto.functions[0].overload = proto.graph.node[3].overload = "v"
    assert gather_facts(Model.from_proto(proto), "m").functions == ["l::Twice:v"]


def test_values_without_a_rank_have_no_type() -> None:
    text = "(float[2,3] x, int64[k] s) => (y) { r = Reshape(x, s)  y = Relu(r) }"
    facts = gather_facts(parsed(text), "m")
    assert (facts.typed, facts.values) == (2, 4)
    assert facts.outputs[0].type == ""


def test_a_backend_takes_and_refuses_nodes() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "zeta" : 1]>
        g (float[2] x) => (float[2] y) {
        a = zeta.B(x)  b = zeta.A(a)  c = zeta.A(b)  y = Neg(x) }"""
    backend = get_backend("onnxruntime_cpu")
    facts = gather_facts(Model.from_proto(onnx.parser.parse_model(text)), "m", backend)
    assert facts.backend == Taken("onnxruntime_cpu", 4, 1, {"zeta::A": 2, "zeta::B": 1})
    assert list(facts.backend.refused) == ["zeta::A", "zeta::B"]


def test_integers_of_few_bits_are_listed_on_request() -> None:
    text = """(uint8[2] x, float[2] f) => (float[2] y, bool[2] t) <int64[2] w = {0, 1}> {
        a = Cast<to=1>(x)  b = Sign(a)  c = Add(f, b)  t = Greater(b, f)  y = Exp(c) }"""
    assert gather_facts(parsed(text), "m").integers == []
    assert gather_facts(parsed(text), "m", integers=True).integers == [
        IntegerTensor("a", "float[2]", "uint8", 0, 255),
        IntegerTensor("b", "float[2]", "uint1", 0, 1),
    ]


def test_declared_types_are_those_of_the_file() -> None:
    model = parsed("(float[n,4] x, int64 i) => (y) { y = Relu(x) }")
    main = model.main
    assert declared_types(main.inputs, main.input_infos) == {"x": "float[n,4]", "i": "int64[]"}
    with pytest.raises(ValueError, match="zip"):
        declared_types(main.inputs, main.output_infos)


def test_what_the_checker_rejects_is_told() -> None:
    text = "(float[2,3,4] x) => (float[?,?,?] y) { y = Transpose<perm = [0,0,5]>(x) }"
    assert "repeated value" in gather_facts(parsed(text), "m").complaint
