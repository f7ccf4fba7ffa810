"""Hints for compilers: marks of inputs, outputs and nodes, once each."""

from collections.abc import Sequence

import onnx
import pytest

from tiered import Model, ModelError, UsageError
from tiered.extensions.partition.hints import OVERLAP, REMAP, RemapMode, mark_overlap, mark_remaps
from tiered.testing import parse

TEXT = """(float[2] x, float[2] z, float[2] d = {1, 2}) => (float[2] y, float[2] x) {
    a = Add(x, z) y = Add(a, d) }"""


def overlaps(model: Model) -> tuple[dict[str, str], dict[str, str]]:
    """Return the marks of the inputs, and of the outputs."""
    proto = model.to_proto()
    inputs, outputs = (
        {info.name: entry.value for info in infos for entry in info.metadata_props
         if entry.key == OVERLAP}
        for infos in (proto.graph.input, proto.graph.output)
    )  # fmt: skip
    return inputs, outputs


@pytest.mark.parametrize(
    ("names", "inputs", "outputs"),
    [
        ((), ["x", "z"], ["y", "x"]),
        (("x",), ["x"], ["x"]),
        (("z",), ["z"], []),
        (("y",), [], ["y"]),
        (("d",), ["d"], []),
        (("x", "y", "z", "d"), ["x", "z", "d"], ["y", "x"]),
    ],
)
def test_inputs_are_loaded_and_outputs_stored(
    names: Sequence[str], inputs: list[str], outputs: list[str]
) -> None:
    model = Model.from_proto(parse(TEXT))
    assert mark_overlap(model, names) == len(inputs) + len(outputs)
    assert overlaps(model) == (
        dict.fromkeys(inputs, "host_load"), dict.fromkeys(outputs, "host_store")
    )  # fmt: skip
    assert mark_overlap(model, names) == 0
    model.check_view()


def test_more_marks_are_counted_alone_and_other_metadata_stays() -> None:
    proto = parse(TEXT)
    proto.graph.input[0].metadata_props.add(key="own", value="1")
    proto.graph.input[0].metadata_props.add(key=OVERLAP, value="other")
    model = Model.from_proto(proto)
    assert mark_overlap(model, ["z"]) == 1
    assert mark_overlap(model) == 3
    (first, *_) = model.to_proto().graph.input
    found = {entry.key: entry.value for entry in first.metadata_props}
    assert found == {"own": "1", OVERLAP: "host_load"}


@pytest.mark.parametrize("name", ["a", "w", ""])
def test_a_name_that_is_no_input_and_no_output_is_an_error(name: str) -> None:
    model = Model.from_proto(parse(TEXT))
    with pytest.raises(UsageError, match=f"overlap_io: the model has no input or output '{name}'"):
        mark_overlap(model, ["x", name])
    assert overlaps(model) == ({}, {})


ATTENTION = """(float[2,2] x, float[2,2] m, bool c) => (float[2,2] y) <int64[1] l0 = {0},
    int64[1] l2 = {2}> {
    n = Sub(x, m)  o = Softmax(n)
    s = MatMul(x, x)  t = Add(s, m)  p = Softmax(t)  u = Add(p, m)  v = Slice(u, l0, l2)
    y = If(c) <then_branch = t () => (float[2,2] q) { q = MatMul(v, v) },
               else_branch = e () => (float[2,2] r) { r = Neg(v) }> }"""


@pytest.mark.parametrize(
    ("modes", "marked"),
    [
        (["after_matmul"], {"s": "outputs", "q": "outputs"}),
        (["after_slice"], {"v": "outputs"}),
        (["before_add"], {"t": "inputs"}),
        (["after_slice", "before_add"], {"v": "outputs", "t": "inputs"}),
        ([], {}),
    ],
)
def test_nodes_are_marked_by_what_they_are(
    modes: Sequence[RemapMode], marked: dict[str, str]
) -> None:
    model = Model.from_proto(parse(ATTENTION))
    assert mark_remaps(model, modes) == len(marked)
    found = {
        node.output.name: node.metadata[REMAP]
        for graph in model.graphs() for node in graph.nodes if REMAP in node.metadata
    }  # fmt: skip
    assert found == marked
    assert mark_remaps(model, modes) == 0


def test_a_sum_that_goes_to_softmax_as_well_is_one() -> None:
    text = """(float[2] x, float[2] m) => (float[2] y, float[2] z) {
        t = Add(x, m)  y = Softmax(t)  z = Neg(t) }"""
    model = Model.from_proto(parse(text))
    assert mark_remaps(model, ["before_add"]) == 1


def test_marks_of_a_node_stay_beside_the_new_one() -> None:
    proto = parse("(float[2,2] x) => (float[2,2] y) { y = MatMul(x, x) }")
    proto.graph.node[0].metadata_props.add(key="own", value="1")
    model = Model.from_proto(proto)
    mark_remaps(model, ["after_matmul"])
    assert dict(model.main.nodes[0].metadata) == {"own": "1", REMAP: "outputs"}


@pytest.mark.parametrize("ir_version", [8, 9])
def test_an_old_ir_version_has_no_metadata(ir_version: int) -> None:
    proto = parse("(float[2,2] x) => (float[2,2] y) { y = MatMul(x, x) }")
    proto.ir_version = ir_version
    with pytest.raises(ModelError, match=f"has IR version {ir_version}, .* which need 10"):
        mark_remaps(Model.from_proto(proto), ["after_matmul"])
    with pytest.raises(ModelError, match=f"has IR version {ir_version}, .* which need 10"):
        mark_overlap(Model.from_proto(proto))
    assert isinstance(proto, onnx.ModelProto)
