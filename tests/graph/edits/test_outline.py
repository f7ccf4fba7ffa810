"""Outlining: nodes become a local function; inlining its call gives the same graph again."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from tiered import Graph, Model, ModelError, Node, PassContext, get_pass
from tiered.runtime import Session, make_inputs
from tiered.testing import parse

HEADER = '<ir_version: {ir}, opset_import: ["" : 21]> '
BRANCHES = (
    "(float[2] x, bool c) => (float[2] y, float[2] u) <float[2] w = {1,2}> {"
    " a = Neg(x) b = Exp(a) u = Add(b, w) k = Relu(u) y = If(c) <"
    "then_branch = t () => (float[2] p) { p = Add(k, a) }, else_branch = e () => (float[2] q) { q = Mul(k, w) }> }"
)
CHAIN = "(float[2] x) => (float[2] y) { a = Neg(x) b = Exp(a) y = Relu(b) }"


def nodes(graph: Graph, *op_types: str) -> list[Node]:
    return [node for op_type in op_types for node in graph.nodes_of(op_type)]


def outlined(text: str | onnx.ModelProto, *op_types: str) -> onnx.FunctionProto:
    """Outline all nodes of some operators in the main graph; return the function.

    The model must be valid and compute the same bits, and its inlined form must have the structural
    hash of the start; the edits are undone and done again.
    """
    before = parse(text)
    model = Model.from_proto(before)
    first, bytes_of_first = model.main.structural_hash(), _content(model)
    mark = model.mark()
    assert model.main.dag is not None
    model.main.outline(nodes(model.main, *op_types), "f", "local")
    model.check_view(types=True)
    after = model.to_proto()
    model.undo_to(mark)
    model.check_view()
    assert _content(model) == bytes_of_first
    model.main.outline(nodes(model.main, *op_types), "f", "local")
    assert _content(model) == after.SerializeToString(deterministic=True)
    _assert_same(before, after)
    get_pass("inline", domains=("local",)).apply(model, PassContext.isolated())
    model.check_view(types=True)
    assert not model.functions
    assert model.main.structural_hash() == first
    _assert_same(before, model.to_proto())
    return after.functions[0]


def _content(model: Model) -> bytes:
    return bytes(model.to_proto().SerializeToString(deterministic=True))


def _assert_same(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    onnx.checker.check_model(after, full_check=True)
    assert list(before.graph.input) == list(after.graph.input)
    assert list(before.graph.output) == list(after.graph.output)
    feeds = make_inputs(before).feeds
    first, second = (Session(model).run(feeds) for model in (before, after))
    for name, expected in first.items():
        if isinstance(expected, np.ndarray):
            assert second[name].dtype == expected.dtype
            assert second[name].shape == expected.shape
        assert np.asarray(second[name]).tobytes() == np.asarray(expected).tobytes()


def signature(function: onnx.FunctionProto) -> tuple[list[str], list[str]]:
    return list(function.input), list(function.output)


def test_a_chain_becomes_one_call() -> None:
    function = outlined(CHAIN, "Neg", "Exp")
    assert signature(function) == (["x"], ["b"])
    assert [node.op_type for node in function.node] == ["Neg", "Exp"]


def test_weights_and_captured_values_become_inputs_and_an_if_goes_whole() -> None:
    function = outlined(BRANCHES, "Add", "Relu", "If")
    assert signature(function) == (["b", "w", "c", "a"], ["u", "y"])


def test_a_capture_by_a_body_outside_is_an_output() -> None:
    assert signature(outlined(BRANCHES, "Neg", "Exp")) == (["x"], ["a", "b"])


def test_a_loop_goes_with_its_body() -> None:
    text = (
        "(float[2] x, int64 n) => (float[2] y) <bool go = {1}> { k = Exp(x) z = Loop(n, go, x) <"
        "body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] w) { co = Identity(ci) w = Add(v, k) }> y = Neg(z) }"
    )
    assert signature(outlined(text, "Loop", "Neg")) == (["n", "go", "x", "k"], ["y"])


def test_absent_operands_stay_absent() -> None:
    text = "(float[4] x, float h) => (float[4] y) { a = Clip(x, , h) y = Neg(a) }"
    function = outlined(text, "Clip")
    assert signature(function) == (["x", "h"], ["a"])
    assert list(function.node[0].input) == ["x", "", "h"]


def test_only_used_outputs_of_a_node_are_outputs() -> None:
    text = "(float[6] x) => (float[2] y) { a, b, c = Split<num_outputs=3>(x) d = Neg(b) y = Add(d, c) }"
    assert signature(outlined(text, "Split", "Neg")) == (["x"], ["c", "d"])


def test_graph_outputs_keep_their_names_also_one_that_is_read_inside() -> None:
    text = "(float[2] x) => (float[2] a, float[2] y, float[2] x) { a = Neg(x) y = Exp(a) }"
    before = parse(text)
    model = Model.from_proto(before)
    model.main.outline(model.main.nodes, "f", "local")
    assert [info.name for info in model.to_proto().graph.output] == ["a", "y", "x"]
    get_pass("inline").apply(model, PassContext.isolated())
    assert model.main.structural_hash() == Model.from_proto(before).main.structural_hash()


def test_a_value_that_a_quantization_annotation_names_stays() -> None:
    proto = parse(CHAIN)
    proto.graph.quantization_annotation.add(tensor_name="a").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="x"
    )
    model = Model.from_proto(proto)
    model.main.outline(nodes(model.main, "Neg", "Exp"), "f", "local")
    assert signature(model.to_proto().functions[0]) == (["x"], ["a", "b"])
    assert [entry.tensor_name for entry in model.to_proto().graph.quantization_annotation] == ["a"]


def test_a_path_that_leaves_and_enters_again_is_refused() -> None:
    model = Model.from_proto(
        parse("(float[2] x) => (float[2] y) { a = Neg(x) b = Exp(a) y = Add(a, b) }")
    )
    with pytest.raises(
        ModelError,
        match=r"leaves the nodes and enters them again: '.*', outside of them, feeds '.*'",
    ):
        model.main.outline(nodes(model.main, "Neg", "Add"), "f", "local")
    assert not model.functions
    assert len(model.journal) == 0


def test_a_path_through_a_captured_value_counts() -> None:
    model = Model.from_proto(parse(BRANCHES))
    with pytest.raises(ModelError, match="leaves the nodes and enters them again"):
        model.main.outline(nodes(model.main, "Neg", "If"), "f", "local")


def test_nodes_of_two_graphs_are_refused() -> None:
    model = Model.from_proto(parse(BRANCHES))
    inner = model.main.nodes_of("If")[0].bodies[0].nodes[0]
    with pytest.raises(ModelError, match="not in"):
        model.main.outline([model.main.nodes[0], inner], "f", "local")


def test_nodes_of_a_body_read_captured_values_as_inputs() -> None:
    before = parse(BRANCHES)
    model = Model.from_proto(before)
    body = model.main.nodes_of("If")[0].bodies[0]
    body.outline(body.nodes, "f", "local")
    model.check_view()
    made = model.to_proto()
    assert signature(made.functions[0]) == (["k", "a"], ["p"])
    _assert_same(before, made)


def test_a_region_without_readers_is_refused() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { a = Neg(x) y = Relu(x) }"))
    with pytest.raises(ModelError, match="no output of the nodes of 'f' is used"):
        model.main.outline(nodes(model.main, "Neg"), "f", "local")


def test_functions_need_ir_8_and_overloads_and_metadata_ir_10() -> None:
    old = Model.from_proto(parse(HEADER.format(ir=7).replace("21", "12") + "g " + CHAIN))
    with pytest.raises(ModelError, match=r"local functions need IR 8; the model has IR 7"):
        old.main.outline(nodes(old.main, "Neg"), "f", "local")
    model = Model.from_proto(parse(HEADER.format(ir=9) + "g " + CHAIN))
    with pytest.raises(ModelError, match=r"overloads need IR 10; the model has IR 9"):
        model.main.outline(nodes(model.main, "Neg"), "f", "local", overload="two")
    with pytest.raises(ModelError, match=r"metadata of functions and nodes need IR 10"):
        model.main.outline(nodes(model.main, "Neg"), "f", "local", metadata={"key": "text"})
    model.main.outline(nodes(model.main, "Neg"), "f", "local")
    first = Model.from_proto(parse(HEADER.format(ir=8).replace("21", "16") + "g " + CHAIN))
    first.main.outline(nodes(first.main, "Neg"), "f", "local")
    full = Model.from_proto(parse(HEADER.format(ir=10) + "g " + CHAIN))
    for overload in ("two", "three"):
        full.main.outline(
            nodes(full.main, "Exp" if overload == "two" else "Relu"), "f", "local",
            overload=overload, metadata={"key": "text"},
        )  # fmt: skip
    with pytest.raises(ModelError, match=r"has a local function 'local.f:two' already"):
        full.main.outline(nodes(full.main, "Neg"), "f", "local", overload="two")
    with pytest.raises(ModelError, match="needs a name and a domain, not '' in 'local'"):
        full.main.outline(nodes(full.main, "Neg"), "", "local")


def test_ids_are_told_apart_by_overload() -> None:
    model = Model.from_proto(parse(CHAIN))
    model.main.outline(nodes(model.main, "Neg"), "f", "local")
    with pytest.raises(ModelError, match=r"has a local function 'local.f' already"):
        model.main.outline(nodes(model.main, "Exp"), "f", "local")
    model.main.outline(nodes(model.main, "Exp"), "f", "local", overload="two")
    assert [function.id for function in model.functions] == [
        ("local", "f", ""),
        ("local", "f", "two"),
    ]
    get_pass("inline").apply(model, PassContext.isolated())
    assert [node.op_type for node in model.main.topological_order()] == ["Neg", "Exp", "Relu"]


def test_a_name_that_an_unknown_operator_has_is_refused() -> None:
    text = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[2] x) => (float[2] y) { a = local.f(x) y = Neg(a) }'
    model = Model.from_proto(parse(text))
    with pytest.raises(
        ModelError, match=r"has calls of 'local.f', which would mean the new function"
    ):
        model.main.outline(nodes(model.main, "Neg"), "f", "local")
    with pytest.raises(ModelError, match="needs a name and a domain"):
        model.main.outline(nodes(model.main, "Neg"), "f", "ai.onnx")


def test_a_function_imports_the_domains_of_its_nodes_at_the_models_versions() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 19, "com.microsoft" : 1, "ai.onnx.ml" : 3]>'
        " g (float[2] x) => (float[2] y) { a = com.microsoft.QuickGelu(x) b = Neg(a) y = Exp(b) }"
    )
    function = outlined(text, "Neg")
    assert {entry.domain: entry.version for entry in function.opset_import} == {"": 19}
    model = Model.from_proto(parse(text))
    model.main.outline([model.main.nodes[0], model.main.nodes[1]], "f", "local")
    imports = model.functions[0].opset_imports
    assert imports == {"": 19, "com.microsoft": 1}


def test_parameters_of_a_function_around_are_passed_on() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[2] x) => (float[2] y) { y = local.outer<k=0.5>(x) }'
        '<domain: "local", opset_import: ["" : 21]> outer<k> (v) => (u) { t = Neg(v) u = Elu<alpha: float = @k>(t) }'
    )
    before = parse(text)
    model = Model.from_proto(before)
    (outer,) = model.functions
    call = outer.outline(outer.nodes, "f", "inner")
    assert call.attribute_protos()["k"].ref_attr_name == "k"
    made = model.to_proto()
    assert list(made.functions[1].attribute) == ["k"]
    assert {entry.domain for entry in made.opset_import} == {"", "local", "inner"}
    _assert_same(before, made)
    get_pass("inline").apply(model, PassContext.isolated())
    _assert_same(before, model.to_proto())


def test_a_region_may_call_functions_and_is_never_recursive() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[2] x) => (float[2] y) { a = local.h(x) y = Neg(a) }'
        '<domain: "local", opset_import: ["" : 21]> h (v) => (u) { u = Exp(v) }'
    )
    before = parse(text)
    model = Model.from_proto(before)
    model.main.outline(model.main.nodes, "f", "local")
    assert not model.recursive_functions()
    _assert_same(before, model.to_proto())
    with pytest.raises(ModelError, match=r"already"):
        model.function("local", "h").outline(model.functions[0].nodes, "f", "local")  # type: ignore[union-attr]  # it exists


@pytest.mark.parametrize("key", ["tiered.compiler", "tiered.device"])
def test_marks_survive_and_two_of_them_are_never_merged(key: str) -> None:
    proto = parse(CHAIN)
    for node, mark in zip(proto.graph.node, ("npu", "npu", "cpu"), strict=True):
        node.metadata_props.add(key=key, value=mark)
    model = Model.from_proto(proto)
    with pytest.raises(ModelError, match=f"is marked {key}='cpu', another one 'npu'"):
        model.main.outline(model.main.nodes, "f", "local")
    call = model.main.outline(nodes(model.main, "Neg", "Exp"), "f", "local")
    assert call.metadata == {key: "npu"}
    assert [node.metadata for node in model.functions[0].nodes] == [{key: "npu"}] * 2
    get_pass("inline", domains=("local",)).apply(model, PassContext.isolated())
    assert [node.metadata[key] for node in model.main.topological_order()] == ["npu", "npu", "cpu"]


def test_notes_that_are_no_marks_may_differ_and_absent_outputs_have_no_type() -> None:
    proto = parse("(float[2] x) => (float[2] y) { , a = com.microsoft.Two(x) y = Relu(a) }")
    for node, text in zip(proto.graph.node, ("one", "two"), strict=True):
        node.metadata_props.add(key="note", value=text)
    model = Model.from_proto(proto)
    call = model.main.outline(model.main.nodes, "f", "local")
    assert not call.metadata
    inner = model.functions[0].nodes
    assert [node.metadata for node in inner] == [{"note": "one"}, {"note": "two"}]
    assert list(inner[0].proto.output) == ["", "a"]


def test_metadata_of_the_region_are_on_function_and_call() -> None:
    model = Model.from_proto(parse(CHAIN))
    call = model.main.outline(
        nodes(model.main, "Neg"), "f", "local", metadata={"tiered.compiler": "npu"}
    )
    assert call.metadata == {"tiered.compiler": "npu"}
    assert model.to_proto().functions[0].metadata_props[0].value == "npu"


def test_declared_types_of_inner_values_come_along() -> None:
    proto = parse(
        '<ir_version: 10, opset_import: ["" : 21, "odd" : 1]> g (float[N] x) => (float[M] y) { a = odd.Op(x) y = Relu(a) }'
    )
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, ["N", 3]))
    model = Model.from_proto(proto)
    model.main.outline(model.main.nodes, "f", "local")
    (info,) = model.to_proto().functions[0].value_info
    assert (info.name, [dim.dim_value for dim in info.type.tensor_type.shape.dim]) == ("a", [0, 3])


def test_a_large_constant_on_disk_goes_into_the_function(tmp_path: Path) -> None:
    numbers = np.arange(1 << 20, dtype=np.float32)
    nodes_ = [
        onnx.helper.make_node("Constant", [], ["w"], value=onnx.numpy_helper.from_array(numbers)),
        onnx.helper.make_node("Add", ["x", "w"], ["y"]),
    ]
    info = [onnx.helper.make_tensor_value_info(name, 1, [1 << 20]) for name in "xy"]
    graph = onnx.helper.make_graph(nodes_, "g", info[:1], info[1:])
    path = tmp_path / "model.onnx"
    onnx.save(
        onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10
        ),
        path,
    )
    model = Model.load(path)
    model.main.outline(model.main.nodes, "f", "local")
    model.save(tmp_path / "out.onnx")
    feeds = {"x": numbers}
    (made,) = Session(onnx.load(tmp_path / "out.onnx")).run(feeds).values()
    assert np.array_equal(made, numbers + numbers)


EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("*.onnx"))


def regions(graph: Graph, chance: random.Random) -> Iterator[list[Node]]:
    """Yield parts of a topological order: each is convex."""
    order, at = list(graph.topological_order()), 0
    while at < len(order):
        size = chance.randint(1, 8)
        part = order[at : at + size]
        at += size
        if chance.random() < 0.6 and any(node.is_used for node in part):
            yield part


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.stem))
def test_random_regions_of_the_examples_come_back(path: Path) -> None:
    before, chance = onnx.load(path), random.Random(path.stem)
    model = Model.from_proto(before, folder=str(path.parent))
    first, count = model.main.structural_hash(), 0
    if model.ir_version < 8:
        model.set_ir_version(8)
    for graph in list(model.graphs()):
        for part in (
            regions(graph, chance) if graph.parent_node is None or graph.parent_node.is_live else ()
        ):
            graph.outline(part, f"region{count}", "region")
            count += 1
    model.check_view()
    after = model.to_proto()
    assert len(after.functions) == count > 0
    _assert_same(before, after)
    get_pass("inline").apply(model, PassContext.isolated())
    assert not model.functions
    assert model.main.structural_hash() == first
    _assert_same(before, model.to_proto())
