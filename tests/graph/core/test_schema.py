"""Schemas, attributes as Python values and back, and nodes that onnx does not survive."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from tiered.graph import Tensor
from tiered.graph.core.schema import (
    AttributeReference,
    attributes_of,
    check_safe,
    decode_attribute,
    default_of,
    encode_attribute,
    input_names,
    operators_of,
    schema_in_use,
    schema_of,
    why_unsafe,
)
from tiered.support.errors import ModelError


def since(op_type: str, domain: str, version: int) -> int | None:
    schema = schema_of(op_type, domain, version)
    return None if schema is None else schema.since_version


@pytest.mark.parametrize(
    ("op_type", "domain", "version", "expected"),
    [
        ("Clip", "", 6, 6),
        ("Clip", "", 10, 6),
        ("Clip", "", 11, 11),
        ("Clip", "", 1 << 40, 13),
        ("Clip", "", -1, None),
        ("Gelu", "", 19, None),
        ("Gelu", "", 20, 20),
        ("Any", "", 20, None),
        ("LinearClassifier", "ai.onnx.ml", 1, 1),
        ("Any", "vendor", 1, None),
    ],
)
def test_a_schema_is_that_of_the_opset(
    op_type: str, domain: str, version: int, expected: int | None
) -> None:
    assert since(op_type, domain, version) == expected


def test_an_operator_that_runtimes_have_earlier_has_its_first_schema() -> None:
    early = schema_in_use("LayerNormalization", "", 13)
    assert early is not None
    assert early.since_version == 17
    assert schema_in_use("LayerNormalization", "vendor", 13) is None
    assert schema_in_use("Gelu", "", 13) is None


def test_what_a_schema_says() -> None:
    schema = schema_of("LeakyRelu", "", 21)
    assert schema is not None
    assert input_names(schema) == ("X",)
    assert default_of(schema, "alpha") == pytest.approx(0.01)
    assert default_of(schema, "none") is None
    assert set(attributes_of(schema)) == {"alpha"}
    assert {"Conv", "Gelu"} <= operators_of("")
    assert operators_of("vendor") == frozenset()


@pytest.mark.parametrize(
    "value",
    [3, 0.5, "text", b"\xff", (1, 2), (0.5, 1.5), ("a", "b"), AttributeReference("alpha")],
)
def test_an_attribute_comes_back_as_it_was(value: Any) -> None:
    proto = encode_attribute("name", value, None)
    assert proto.name == "name"
    assert decode_attribute(proto) == value


def test_a_tensor_comes_back_and_a_graph_is_no_attribute() -> None:
    array = np.array([1, 2], np.int8)
    found = decode_attribute(encode_attribute("value", Tensor.of(array), None))
    np.testing.assert_array_equal(found.numpy(), array)
    body = onnx.helper.make_attribute("body", onnx.GraphProto(name="g"))
    assert decode_attribute(body) is None


def test_the_schema_decides_the_type_of_an_attribute() -> None:
    schema = schema_of("LeakyRelu", "", 21)
    assert encode_attribute("alpha", 2.0, schema).type == onnx.AttributeProto.FLOAT
    assert encode_attribute("alpha", 2, None).type == onnx.AttributeProto.INT
    reference = encode_attribute("alpha", AttributeReference("a"), schema)
    assert (reference.type, reference.ref_attr_name) == (onnx.AttributeProto.FLOAT, "a")
    kept = onnx.helper.make_attribute("alpha", 3.0)
    assert encode_attribute("alpha", kept, schema) is kept


def test_references_are_equal_by_name() -> None:
    assert AttributeReference("a") == AttributeReference("a") != AttributeReference("b")
    assert len({AttributeReference("a"), AttributeReference("a")}) == 1
    assert repr(AttributeReference("a")) == "@a"
    assert AttributeReference("a") != "a"


class Plain:
    """What the checks read of a node."""

    def __init__(self, proto: onnx.NodeProto) -> None:
        self.proto = proto
        self.op_type, self.domain, self.label = proto.op_type, proto.domain, proto.output[0]

    def attribute_protos(self) -> Mapping[str, onnx.AttributeProto]:
        return {each.name: each for each in self.proto.attribute}


@pytest.mark.parametrize(
    ("equation", "is_safe"),
    [
        ("ij,jk->ik", True),
        ("ij , jk", True),
        ("...ij,...jk->...ik", True),
        ("ij,jk->", True),
        ("i1,jk->ik", False),
        ("....ij->ij", False),
        ("ij->ik->k", False),
        ("i..j->ij", False),
    ],
)
def test_a_malformed_equation_is_not_given_to_onnx(equation: str, is_safe: bool) -> None:
    node = Plain(onnx.helper.make_node("Einsum", ["x"], ["y"], equation=equation))
    assert (why_unsafe(node) == "") is is_safe
    if is_safe:
        check_safe(node)
    else:
        with pytest.raises(ModelError, match=r"node 'y' \(Einsum\) has a malformed equation"):
            check_safe(node)


@pytest.mark.parametrize(
    ("outputs", "attributes", "is_safe"),
    [(2, {"num_outputs": 2}, True), (3, {"num_outputs": 2}, False), (3, {}, True)],
)
def test_a_split_with_too_many_outputs_is_not_given_to_onnx(
    outputs: int, attributes: dict[str, int], is_safe: bool
) -> None:
    names = [f"y{at}" for at in range(outputs)]
    node = Plain(onnx.helper.make_node("Split", ["x"], names, None, None, None, None, **attributes))
    assert (why_unsafe(node) == "") is is_safe


def test_another_domain_is_not_looked_at() -> None:
    proto = onnx.helper.make_node("Einsum", ["x"], ["y"], domain="vendor", equation="1")
    assert why_unsafe(Plain(proto)) == ""


def test_why_onnx_does_not_survive_a_node() -> None:
    equation = (
        "has a malformed equation {!r}: expected terms of letters, each with '...' at most once, "
        "and '->' at most once"
    )
    for op_type, outputs, domain, attributes, expected in (
        ("Relu", 1, "", {"equation": "1"}, ""), ("Split", 3, "", {"num_outputs": 3}, ""),
        ("Split", 3, "", {"num_outputs": 2}, "has more outputs than its num_outputs"),
        ("Split", 3, "vendor", {"num_outputs": 2}, ""), ("Split", 3, "", {"equation": "1"}, ""),
        ("Split", 3, "", {"num_outputs": AttributeReference("n")}, ""),
        ("Einsum", 1, "", {"equation": "1"}, equation.format("1")), ("Einsum", 1, "", {}, ""),
        ("Einsum", 1, "", {"equation": AttributeReference("e")}, ""),
        ("Einsum", 1, "", {"equation": b"\xff"}, equation.format(b"\xff")),
        ("Einsum", 1, "", {"num_outputs": 0, "equation": "i->1"}, equation.format("i->1")),
    ):  # fmt: skip
        proto = onnx.NodeProto(op_type=op_type, domain=domain, output=["y"] * outputs)
        proto.attribute.extend(
            encode_attribute(name, value, None) for name, value in attributes.items()
        )
        node = Plain(proto)
        assert why_unsafe(node) == expected
        if expected:
            with pytest.raises(ModelError) as caught:
                check_safe(node)
            assert str(caught.value) == f"node 'y' ({op_type}) {expected}"
        else:
            check_safe(node)


def test_attributes_of_all_types_are_read_and_written() -> None:
    array = np.array([1, 2], np.int8)
    weights, places = (onnx.helper.make_tensor(name, 7, [1], [0]) for name in "vi")
    sparse = Tensor(onnx.helper.make_sparse_tensor(weights, places, [3]))
    stored = encode_attribute("value", Tensor.of(array, in_memory=0), None)
    assert stored.t.raw_data == array.tobytes()
    written = encode_attribute("value", sparse, None)
    assert written.type == onnx.AttributeProto.SPARSE_TENSOR
    assert decode_attribute(written).is_sparse
    several = onnx.helper.make_attribute("k", [weights, places])
    assert [each.shape for each in decode_attribute(several)] == [(1,), (1,)]
    kind = onnx.helper.make_tensor_type_proto(1, [2])
    assert decode_attribute(onnx.helper.make_attribute("k", kind)) == kind
    reference = encode_attribute("alpha", AttributeReference("a"), None)
    assert (reference.type, reference.ref_attr_name) == (0, "a")
    odd = encode_attribute("odd", 2, schema_of("LeakyRelu", "", 21))
    assert odd.type == onnx.AttributeProto.INT
    gemm, cast = schema_of("Gemm", "", 21), schema_of("Cast", "", 21)
    assert gemm is not None
    assert cast is not None
    assert [default_of(gemm, name) for name in ("alpha", "transA")] == [1.0, 0]
    assert default_of(cast, "to") is None


def test_versions_of_other_domains_are_their_own() -> None:
    for op_type, domain, version, expected in (
        ("TreeEnsemble", "ai.onnx.ml", 4, None), ("TreeEnsemble", "ai.onnx.ml", 5, 5),
        ("LabelEncoder", "ai.onnx.ml", 3, 2), ("LabelEncoder", "ai.onnx.ml", 1 << 40, 4),
        ("Relu", "", 0, None), ("Relu", "", 1, 1),
    ):  # fmt: skip
        assert since(op_type, domain, version) == expected, (op_type, version)
    early = [schema_in_use("LayerNormalization", "", version) for version in (1, 16, 17, 21)]
    assert [each and each.since_version for each in early] == [17] * 4
