"""Diff: the nodes that a pass changed, and nothing else."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.small import failing, fuse_relu, look, model, registered
from tiered import Graph, Model, PassContext, Sequential, Tensor, function_pass, module_pass
from tiered.pipeline.instruments import Diff
from tiered.support.errors import PassError


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    with registered(fuse_relu, look):
        yield


def diff_of(pass_: object, given: Model | None = None) -> str:
    texts: list[str] = []
    with PassContext(opt_level=4, instruments=[Diff(write=texts.append)]):
        pass_(given or model())  # type: ignore[operator]  # a pass
    return "".join(texts)


def test_a_diff_shows_what_went_and_what_came() -> None:
    assert diff_of(Sequential([look, fuse_relu])) == (
        "--- before fuse_relu\n"
        "+++ after fuse_relu\n"
        "@@ the model @@\n"
        "-[node_a] a = Relu (x)\n"
        "-[node_b] b = Relu (a)\n"
        "+[node_b] b = Relu (x)\n"
    )


def test_attributes_names_and_weights_are_shown() -> None:
    @function_pass(opt_level=0)
    def edit(graph: Graph, ctx: PassContext) -> None:
        _, other, neg, absolute = graph.nodes
        graph.set_attribute(neg, "axis", 1)
        graph.rename_node(absolute, "other")
        graph.set_input(other, 0, graph.constant(np.zeros((2, 3), np.float32), "zeros"))

    assert diff_of(edit).splitlines()[3:] == [
        "-[node_b] b = Relu (a)",
        "+[node_b] b = Relu (zeros)",
        "-[node_c] c = Neg (b)",
        "+[node_c] c = Neg <axis: int = 1> (b)",
        "-[node_y] y = Abs (c)",
        "+[other] y = Abs (c)",
        "+<float[2,3] zeros>",
    ]


def test_a_folded_node_is_removed_and_its_initializer_is_added() -> None:
    @function_pass(opt_level=0)
    def fold(graph: Graph, ctx: PassContext) -> None:
        graph.fold_to_initializer(graph.nodes[0], 0, Tensor.of(np.zeros(2, np.float32)))

    lines = diff_of(fold).splitlines()
    assert "-[node_a] a = Relu (x)" in lines
    assert any(line.startswith("+<") and line.endswith(" a>") for line in lines)


def test_constants_come_and_go() -> None:
    @function_pass(opt_level=0)
    def swap(graph: Graph, ctx: PassContext) -> None:
        graph.constant(np.zeros(3, np.float32), "came")
        graph.discard(graph.constant(np.zeros(3, np.float32), "both"))
        graph.discard(graph.values["w"])

    text = "g (float[2] x) => (float[2] y) <float[1] w = {1}> { y = Relu(x) }"
    lines = diff_of(swap, model(text)).splitlines()
    assert [line for line in lines if line[1:2] == "<"] == ["-<float[1] w>", "+<float[3] came>"]


def test_what_is_changed_and_changed_back_is_no_change() -> None:
    @function_pass(opt_level=0)
    def edit(graph: Graph, ctx: PassContext) -> None:
        node = graph.nodes[0]
        graph.rename_node(node, "other")
        graph.rename_node(node, "node_a")

    assert diff_of(edit) == ""


def test_a_renamed_value_shows_at_its_producer_and_its_users() -> None:
    @function_pass(opt_level=0)
    def rename(graph: Graph, ctx: PassContext) -> None:
        graph.rename_value(graph.nodes[0].output, "renamed")

    assert diff_of(rename).splitlines()[3:] == [
        "-[node_a] a = Relu (x)",
        "+[node_a] renamed = Relu (x)",
        "-[node_b] b = Relu (a)",
        "+[node_b] b = Relu (renamed)",
    ]


def test_edits_that_no_node_shows_are_named() -> None:
    @module_pass(opt_level=0)
    def imports(model: Model, ctx: PassContext) -> None:
        model.set_opset("com.microsoft", 1)
        model.set_ir_version(9)

    expected = " // changed too: the imported opsets, the IR version"
    assert diff_of(imports).splitlines()[3:] == [expected]


def test_exchanged_outputs_are_rewound() -> None:
    two = "g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x)  z = Neg(x) }"

    @function_pass(opt_level=0)
    def exchange(graph: Graph, ctx: PassContext) -> None:
        one, other = graph.nodes
        graph.exchange_outputs(one, 0, other, 0)

    assert diff_of(exchange, model(two)).splitlines()[3:] == [
        "-[node_y] y = Relu (x)",
        "+[node_y] z = Relu (x)",
        "-[node_z] z = Neg (x)",
        "+[node_z] y = Neg (x)",
    ]


def test_only_the_passes_that_are_asked_for() -> None:
    texts: list[str] = []
    with PassContext(instruments=[Diff(["look"], write=texts.append)]):
        Sequential([look, fuse_relu])(model())
    assert texts == []


def test_a_pass_that_fails_has_no_diff(capsys: pytest.CaptureFixture[str]) -> None:
    with PassContext(instruments=[Diff()]), pytest.raises(PassError):
        failing(ValueError())(model())
    assert capsys.readouterr() == ("", "")
