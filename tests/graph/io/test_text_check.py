"""Where strings of a model are not UTF-8."""

import onnx
import pytest

from tests.small import proto
from tiered.graph.io.text_check import wrong_header, wrong_text

TEXT = """<ir_version: 10, opset_import: ["" : 21, "locals" : 1]> main (float[N] inp) =>
    (float[N] outp) { outp = locals.func(inp) }
    <domain: "locals", opset_import: ["" : 21, "others" : 1]> func (p) => (q) { q = Neg(p) }"""


def broken(word: str) -> onnx.ModelProto:
    """Return a model in which the first letter of each such word is no UTF-8."""
    made = onnx.parser.parse_model(TEXT)
    made.metadata_props.add(key="author", value="somebody")
    made.graph.metadata_props.add(key="origin", value="nowhere")
    made.functions[0].overload = "over"
    data = made.SerializeToString().replace(word.encode(), b"\xff" + word[1:].encode())
    return onnx.ModelProto.FromString(data)


def test_a_model_of_utf_8_has_no_wrong_text() -> None:
    assert wrong_text(proto()) is None
    assert wrong_header(proto()) is None
    assert wrong_header(broken("absent")) is None


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("locals", "functions[0].domain"),
        ("others", "functions[0].opset_import[1].domain"),
        ("author", "metadata_props[0].key"),
        ("somebody", "metadata_props[0].value"),
        ("origin", "graph.metadata_props[0].key"),
        ("inp", "graph.input[0].name"),
        ("outp", "graph.output[0].name"),
        ("over", "functions[0].overload"),
        ("func", "functions[0].name"),
    ],
)
def test_the_first_wrong_string_of_a_header(word: str, path: str) -> None:
    assert wrong_header(broken(word)) == path


def test_the_first_wrong_string_of_a_message() -> None:
    assert wrong_text(broken("main")) == "graph.name"
    assert wrong_text(broken("outp")) == "graph.node[0].output[0]"
    assert wrong_text(broken("nowhere")) == "graph.metadata_props[0].value"
    assert wrong_header(broken("main")) is None
