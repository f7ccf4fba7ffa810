"""What a file may not say, and what the error then says."""

from pathlib import Path

import onnx
import pytest
from onnx import parser

from tests.small import HEADER, proto
from tiered import Model, ModelError
from tiered.graph.replacing import replace_uses

FOREIGN = (
    '<ir_version: 10, opset_import: ["vendor" : 1]> g (float[2] x, float[2] z) => (float[2] y)'
    " { y = vendor.F(x) }"
)


@pytest.mark.parametrize(
    ("dtype", "dims", "words"),
    [
        (999, [2], "unknown data_type: 999"),
        (0, [2], "unknown data_type: 0"),
        (1, [-1, 3], "negative dims"),
        (1, [1 << 40, 1 << 40], "impossible dims"),
    ],
)
def test_a_tensor_that_cannot_be_is_named(dtype: int, dims: list[int], words: str) -> None:
    tensor = onnx.TensorProto(name="w", data_type=dtype, dims=dims)
    made = proto()
    made.graph.initializer.append(tensor)
    with pytest.raises(ModelError, match=f"'w'.*{words}"):
        Model.from_proto(made)
    made = proto("g (float[2] x) => (float[2] y) { w = Constant<value = float {1}>() y = Add(x, w) }")
    made.graph.node[0].attribute[0].t.CopyFrom(tensor)
    with pytest.raises(ModelError, match=f"node_w.*{words}"):
        Model.from_proto(made)


def test_an_error_names_the_file_once(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    for text in ("y = Relu(nowhere)", "y = local.f(x)"):
        function = '<domain: "local", opset_import: ["local": 1]> f (a) => (b) { b = local.f(a) }'
        header = HEADER.replace(']', ', "local" : 1]')
        made = onnx.parser.parse_model(
            f"{header} g (float[2] x) => (float[2] y) {{ {text} }} {function}"
        )
        path.write_bytes(made.SerializeToString())
        with pytest.raises(ModelError) as caught:
            Model.load(path)
        assert str(caught.value).count(str(path)) == 1


def test_a_model_of_foreign_operators_imports_the_standard_ones_when_it_gets_some() -> None:
    model = Model.from_proto(onnx.parser.parse_model(FOREIGN))
    mark = model.mark()
    y, x = model.main.outputs[0], model.main.inputs[0]
    replace_uses(model.main, y, x)
    made = model.to_proto()
    assert {entry.domain: entry.version for entry in made.opset_import} == {"vendor": 1, "": 22}
    onnx.checker.check_model(made)
    model.undo_to(mark)
    assert [entry.domain for entry in model.to_proto().opset_import] == ["vendor"]


def test_a_split_has_no_more_parts_than_it_says() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
        g (float[4] x) => (float[2] a) { a, b, c = Split<axis=0, num_outputs=2>(x) }"""
    with pytest.raises(ModelError, match="more outputs than its num_outputs"):
        Model.from_proto(parser.parse_model(text))


def test_an_operator_that_is_no_text_is_named() -> None:
    made = proto("g (float[2] x) => (float[2] y) { y = LeakyRelu<alpha=0.5>(x) }")
    spoiled = made.SerializeToString().replace(b"LeakyRelu", b"L\xa4akyRelu")
    with pytest.raises(ModelError, match="expected the name of an operator, in UTF-8"):
        Model.from_proto(onnx.ModelProto.FromString(spoiled))


def test_an_attribute_of_another_kind_than_its_content_is_no_body() -> None:
    made = proto(
        """g (bool c, float[2] x) => (float[2] y) {
            y = If (c) <then_branch = a () => (float[2] u) { u = Neg(x) },
                        else_branch = b () => (float[2] v) { v = Abs(x) }> }"""
    )
    made.graph.node[0].attribute[1].type = onnx.AttributeProto.INT
    model = Model.from_proto(made)
    assert model.main.outputs[0].shape == (2,)
    assert len(model.main.nodes[0].bodies) == 1
