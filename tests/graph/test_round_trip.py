"""A model that goes through the view unedited is the same model, message by message."""

import warnings
from pathlib import Path

import onnx
import pytest
from onnx.backend.test.loader import load_model_tests

from tests.graph.editor import fresh, serialized
from tiered.graph import Model

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "models"
FILES = sorted([*DATA.rglob("*.onnx"), *EXAMPLES.glob("*.onnx")])


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')


def bytes_of(proto: onnx.ModelProto) -> bytes:
    return bytes(proto.SerializeToString(deterministic=True))


def round_trip(proto: onnx.ModelProto) -> onnx.ModelProto:
    before = bytes_of(proto)
    model = Model.from_proto(proto)
    model.check_view()
    made = model.to_proto()
    assert bytes_of(proto) == before, "the input is only read"
    return made


def test_every_node_case_of_the_onnx_backend_suite_stays_as_it_is() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    assert len(cases) > 1000
    for case in cases:
        assert case.model is not None
        assert bytes_of(round_trip(case.model)) == bytes_of(case.model), case.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_model_file_stays_as_it_is(path: Path) -> None:
    proto = onnx.load(path, load_external_data=False)
    assert bytes_of(round_trip(proto)) == bytes_of(proto)


def test_a_second_round_changes_nothing() -> None:
    first = serialized(fresh())
    assert bytes_of(round_trip(onnx.ModelProto.FromString(first))) == first


# --- the normalisations that docs/view.md declares ------------------------------------------------


def test_nodes_are_sorted_where_the_file_has_them_in_no_order() -> None:
    proto = parsed("g (float[2] x) => (float[2] y) { y = Neg(a)  a = Relu(x)  b = Abs(x) }")
    assert [node.op_type for node in round_trip(proto).graph.node] == ["Relu", "Neg", "Abs"]


def test_a_name_that_hides_one_of_a_graph_above_is_made_fresh() -> None:
    proto = parsed(
        "g (float[2] x, bool c) => (float[2] y) { a = Relu(x) y = If(c) <"
        "then_branch = t () => (float[2] a) { a = Neg(x) },"
        "else_branch = e () => (float[2] q) { q = Abs(a) }> }"
    )
    then_branch = round_trip(proto).graph.node[1].attribute[0].g
    assert then_branch.output[0].name == then_branch.node[0].output[0] == "a_1"


def test_an_annotation_of_nothing_is_dropped() -> None:
    proto = parsed("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    proto.graph.quantization_annotation.add(tensor_name="y")
    proto.graph.quantization_annotation.add(tensor_name="gone")
    kept = round_trip(proto).graph.quantization_annotation
    assert [annotation.tensor_name for annotation in kept] == ["y"]


def test_a_domain_that_is_imported_twice_is_imported_once() -> None:
    proto = parsed("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    proto.opset_import.add(domain="ai.onnx", version=21)
    assert [entry.version for entry in round_trip(proto).opset_import] == [21]


def test_parts_unknown_to_the_view_survive() -> None:
    proto = parsed("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    proto.graph.doc_string, proto.producer_name = "kept", "kept too"
    proto.metadata_props.add(key="a", value="b")
    proto.graph.node[0].metadata_props.add(key="c", value="d")
    proto.graph.value_info.add(name="of nothing")
    unknown = onnx.ModelProto.FromString(bytes_of(proto) + bytes([0xFA, 0x3F, 1, 65]))
    assert bytes_of(round_trip(unknown)) == bytes_of(unknown)
