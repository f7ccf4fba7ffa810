from tiered import Model, get_pass
from tiered.testing import assert_unchanged, parse

PASS = "range_annotation"
TEXT = """
    <ir_version: {}, opset_import: ["": 17, "qonnx.custom_op.general": 1]>
    g (float[N] x) => (float[N] y) <float s = {{1}}, float z = {{0}}, float b = {{3}}>
    {{ q = qonnx.custom_op.general.Quant(x, s, z, b) r = Relu(q) y = Exp(r) }}
"""


def annotations(model: Model) -> dict[str, dict[str, str]]:
    return {node.op_type: node.metadata for node in model.main.nodes}


def test_results_of_integers_have_their_type() -> None:
    model = Model.from_proto(parse(TEXT.format(10)))
    get_pass(PASS).apply(model)
    expected = {"Quant": {"tiered.dtype": "int3"}, "Relu": {"tiered.dtype": "uint2"}, "Exp": {}}
    assert annotations(model) == expected
    again = Model.from_proto(model.to_proto())
    mark = again.mark()
    get_pass(PASS).apply(again)
    assert not again.changed_since(mark)


def test_annotations_that_hold_no_more_go_and_others_stay() -> None:
    model = Model.from_proto(parse(TEXT.format(10)))
    exp = next(node for node in model.main.nodes if node.op_type == "Exp")
    model.main.set_metadata(exp, {"tiered.dtype": "int3", "author": "me"})
    get_pass(PASS).apply(model)
    assert annotations(model)["Exp"] == {"author": "me"}
    get_pass(PASS, remove=True).apply(model)
    assert annotations(model) == {"Quant": {}, "Relu": {}, "Exp": {"author": "me"}}


def test_old_files_have_no_metadata() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 9, opset_import: ["" : 17]> g (int8[2] x) => (int8[2] y) { y = Identity(x) }',
        because="nodes have no metadata before IR 10",
    )
