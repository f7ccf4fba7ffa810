"""An operator that looks up inputs and outputs of its bodies by name gets the names of the file."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from tests.small import content
from tiered import Graph, Model, optimize
from tiered.support.errors import ModelError

N_WORDS, WIDTH = 8, 4

NESTED = """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1, "own" : 1]>
g (float[2] ids, bool c) => (float[2] logits, float[2] z) {
    e = com.microsoft.Search <decoder = body (float[2] ids, float[2] e) => (float[2] logits) {
        s = Add(ids, e)
        logits = If (c) <then_branch = t () => (float[2] u) { u = Neg(ids) },
                         else_branch = f () => (float[2] v) { v = Abs(s) }> }> (ids)
    a = Relu(ids)
    z = Exp(a)
    logits = Neg(e)
}"""


def greedy_search() -> onnx.ModelProto:
    """Return a search over a table of words; the body's `input_ids` hides the model's."""
    info, rng = helper.make_tensor_value_info, np.random.default_rng(0)
    table = rng.standard_normal((N_WORDS, N_WORDS)).astype(np.float32)
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "input_ids"], ["logits"]),
            helper.make_node("Cast", ["input_ids"], ["floats"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["floats", "first"], ["rows"]),
            helper.make_node("Unsqueeze", ["rows", "second"], ["heads"]),
            helper.make_node("Unsqueeze", ["heads", "last"], ["wide"]),
            helper.make_node("Expand", ["wide", "shape"], ["new"]),
            helper.make_node("Concat", ["past_0", "new"], ["present_0"], axis=3),
        ],
        "decoder",
        [
            info("input_ids", TensorProto.INT32, ["b", "t"]),
            info("position_ids", TensorProto.INT32, ["b", "t"]),
            info("attention_mask", TensorProto.INT32, ["b", "a"]),
            info("past_0", TensorProto.FLOAT, [2, "b", 1, "p", WIDTH]),
        ],
        [
            info("logits", TensorProto.FLOAT, ["b", "t", N_WORDS]),
            info("present_0", TensorProto.FLOAT, [2, "b", 1, "q", WIDTH]),
        ],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([0], np.int64), "first"),
            numpy_helper.from_array(np.array([2], np.int64), "second"),
            numpy_helper.from_array(np.array([4], np.int64), "last"),
            numpy_helper.from_array(np.array([2, 1, 1, 1, WIDTH], np.int64), "shape"),
        ],
    )
    search = helper.make_node(
        "GreedySearch",
        ["input_ids", "max_length", "min_length"],
        ["logits"],
        domain="com.microsoft",
        eos_token_id=N_WORDS - 1,
        pad_token_id=N_WORDS - 1,
        decoder_start_token_id=0,
        vocab_size=N_WORDS,
        model_type=0,
        decoder=body,
    )
    graph = helper.make_graph(
        [search],
        "g",
        [info("input_ids", TensorProto.INT32, ["B", "S"])],
        [info("logits", TensorProto.INT32, ["B", "M"])],
        [
            numpy_helper.from_array(np.array([6], np.int32), "max_length"),
            numpy_helper.from_array(np.array([1], np.int32), "min_length"),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def body_of(proto: onnx.ModelProto, name: str = "decoder") -> onnx.GraphProto:
    (body,) = (
        attribute.g
        for node in proto.graph.node
        for attribute in node.attribute
        if attribute.name == name
    )
    return body


def names(body: onnx.GraphProto) -> tuple[list[str], list[str]]:
    return [info.name for info in body.input], [info.name for info in body.output]


@pytest.mark.parametrize("level", range(5))
def test_a_search_runs_after_each_level(level: int) -> None:
    proto = greedy_search()
    fed = {"input_ids": np.array([[1, 2, 3]], np.int32)}

    def run(model: onnx.ModelProto) -> np.ndarray:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (found,) = session.run(None, fed)
        return np.asarray(found)

    optimized = optimize(proto, opt_level=level)
    assert names(body_of(optimized)) == names(body_of(proto))
    assert run(optimized).tolist() == run(proto).tolist()


def test_names_that_hide_others_are_written_as_they_were() -> None:
    proto = parser.parse_model(NESTED)
    model = Model.from_proto(proto)
    model.check_view()
    assert model.to_proto() == proto
    (body,) = model.main.body_nodes[0].bodies
    assert [value.name for value in body.inputs] != ["ids", "e"]
    assert model.copy().to_proto() == proto
    copied = Model.from_proto(proto)
    (search,) = copied.main.body_nodes
    before = content(copied)
    (made,) = copied.main.copy_nodes([search], {}, prefix="call")
    copied.check_view()
    inner = made.bodies[0]
    assert isinstance(inner, Graph)
    written = copied.to_proto().graph.node[-1]
    assert names(written.attribute[0].g) == (["ids", "e"], ["logits"])
    copied.undo_to(0)
    copied.check_view()
    assert content(copied) == before


def test_a_body_reads_nothing_that_its_own_names_hide() -> None:
    model = Model.from_proto(parser.parse_model(NESTED))
    main = model.main
    (body,) = main.body_nodes[0].bodies
    outer = main.values["ids"]
    (add,) = body.nodes_of("Add")
    assert not body.sees(outer)
    with pytest.raises(ModelError, match="does not see"):
        body.set_input(add, 1, outer)
    a, logits = main.values["a"], main.values["logits"]
    body.set_input(add, 1, a)
    with pytest.raises(ModelError, match="'ids'"):
        body.rename_value(add.output, "ids")
    mark = model.mark()
    main.rename_value(logits, "other")
    with pytest.raises(ModelError, match="in the file"):
        main.rename_value(a, "logits")
    model.undo_to(mark)
    # The captured value cannot take such a name, so an Identity has it in the outer graph.
    main.replace_uses(logits, a)
    assert a.name == "a"
    assert main.outputs[0].name == "logits"
    model.check_view()


def test_the_names_of_bodies_of_control_flow_may_change() -> None:
    model = Model.from_proto(
        parser.parse_model(
            """<ir_version: 10, opset_import: ["" : 21]>
            g (float[2] x, int64 m, bool c) => (float[2] y) {
                y = Loop (m, c, x) <body = b (int64 i, bool c, float[2] x) => (bool d, float[2] z)
                    { d = Identity(c)  z = Neg(x) }> }"""
        )
    )
    written = names(body_of(model.to_proto(), "body"))
    assert written == (["i", "c_1", "x_1"], ["d", "z"])
