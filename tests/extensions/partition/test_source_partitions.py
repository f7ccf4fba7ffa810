"""Source partitions: from metadata of the exporter, calls of functions, and names of nodes."""

import pytest

from tests.extensions.partition.graphs import labels, model
from tiered import Model, UsageError
from tiered.extensions.partition import get_source_partitions

HIERARCHY = "pkg.torch.onnx.class_hierarchy"
SCOPES = "pkg.torch.onnx.name_scopes"
LINEAR = "torch.nn.modules.linear.Linear"


def _exported() -> Model:
    of = model(
        "g (float[1,2] x) => (float[1,2] y) <float[2,2] w = {1,2,3,4}, float[2] b = {1,2}> "
        "{ m = MatMul(x, w)  a = Add(m, b)  r = Relu(a)  n = MatMul(r, w)  y = Add(n, b) }"
    )
    origins = {
        "m": ("fc1", "aten.linear.default", "linear"),
        "a": ("fc1", "aten.linear.default", "linear"),
        "n": ("fc2", "aten.linear.default", "linear_1"),
        "y": ("fc2", "aten.linear.default", "linear_1"),
    }
    for node in of.main.nodes:
        if node.label in origins:
            scope, kind, name = origins[node.label]
            of.main.set_metadata(
                node,
                {HIERARCHY: str(["M", LINEAR, kind]), SCOPES: str(["", scope, name])},
            )
    return of


def test_instances_of_a_class_are_partitions_of_their_own() -> None:
    for source in (LINEAR, "Linear", "linear.Linear"):
        found = get_source_partitions(_exported(), [source])
        (first, second) = found[source]
        assert (labels(first.nodes), first.scope) == (["m", "a"], "fc1")
        assert (labels(second.nodes), second.scope) == (["n", "y"], "fc2")
        assert first.source == first.module_type == source


def test_classes_and_functions_are_sources() -> None:
    class Linear:
        pass

    def linear() -> None:
        pass

    Linear.__module__, Linear.__qualname__ = "torch.nn.modules.linear", "Linear"
    found = get_source_partitions(_exported().to_proto(), [Linear, linear])
    assert list(found) == [Linear, linear]
    assert [part.source for part in found[Linear]] == [LINEAR] * 2
    assert [part.scope for part in found[linear]] == ["linear", "linear_1"]
    with pytest.raises(UsageError, match="a source is a name, a class or a function, not 3"):
        get_source_partitions(_exported(), [3])  # type: ignore[list-item]  # on purpose


def test_a_layer_that_is_called_twice_has_two_partitions() -> None:
    of = _exported()
    for node in of.main.nodes:
        metadata = {**node.metadata}
        if SCOPES in metadata:
            metadata[SCOPES] = metadata[SCOPES].replace("fc2", "fc1")
            of.main.set_metadata(node, metadata)
    first, second = get_source_partitions(of, ["Linear"])["Linear"]
    assert (labels(first.nodes), labels(second.nodes)) == (["m", "a"], ["n", "y"])
    assert first.scope == second.scope == "fc1"


def test_inputs_outputs_and_weights_of_a_source() -> None:
    first, second = get_source_partitions(_exported(), ["Linear"])["Linear"]
    assert [value.name for value in first.input_nodes] == ["x"]
    assert [value.name for value in first.output_nodes] == ["a"]
    assert [value.name for value in first.params] == ["w", "b"]
    # An output of the graph counts, whether or not a node reads it.
    assert [value.name for value in second.output_nodes] == ["y"]


def test_an_operator_of_torch_is_a_source() -> None:
    found = get_source_partitions(_exported().main, ["aten.linear.default", "Conv2d"])
    assert list(found) == ["aten.linear.default"]
    assert [part.scope for part in found["aten.linear.default"]] == ["linear", "linear_1"]


def test_scopes_in_names_of_nodes_are_sources() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  b = Abs(a)  y = Neg(b) }")
    for node, name in zip(of.main.nodes, ("/l1/conv/Neg", "/l1/Abs", "/l2/conv/Neg"), strict=True):
        of.main.rename_node(node, name)
    found = get_source_partitions(of, ["l1", "conv", "l2/conv"])
    assert [(p.scope, len(p.nodes)) for p in found["l1"]] == [("/l1", 2)]
    assert [p.scope for p in found["conv"]] == ["/l1/conv", "/l2/conv"]
    assert [p.scope for p in found["l2/conv"]] == ["/l2/conv"]


def test_calls_of_functions_are_sources() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) { a = pkg.Linear(x)  y = pkg.Linear(a) }\n"
        '<opset_import: ["" : 21], domain: "pkg"> Linear (p) => (q) { q = Neg(p) }',
        '<ir_version: 10, opset_import: ["" : 21, "pkg" : 1]>\n',
    )
    assert len(get_source_partitions(of, ["Linear"])["Linear"]) == 2
    assert len(get_source_partitions(of, ["pkg::Linear"])["pkg::Linear"]) == 2


def test_without_metadata_there_is_nothing_and_malformed_metadata_is_none() -> None:
    of = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    assert get_source_partitions(of, ["Linear"]) == {}
    for text in ("not a list", "3", ""):
        of.main.set_metadata(of.main.nodes[0], {HIERARCHY: text, SCOPES: text})
        assert get_source_partitions(of, ["Linear"]) == {}


def test_which_nodes_are_of_one_call() -> None:
    sequential, mine = "torch.nn.modules.container.Sequential", "my.nn.Linear"
    lstm, linear, aten = "torch.nn.modules.rnn.LSTM", "aten.linear.default", "aten.linear"
    for source, classes, scopes, expected in (
        (LINEAR, [LINEAR, linear], [["fc", "l"], ["fc", "l_1"]], "fc a, fc b"),
        (LINEAR, [LINEAR, linear], [["fc", "l"], ["fc", "l"]], "fc ab"),
        (LINEAR, [LINEAR, linear], [["fc", "l", "m"], ["fc", "l", "n"]], "fc ab"),
        (LINEAR, [LINEAR, linear], [["fc"], ["fc"]], "fc ab"),
        (LINEAR, [LINEAR], [["fc"], ["fc"]], "fc ab"),
        (LINEAR, [LINEAR, "linear"], [["fc", "l"], ["fc", "l_1"]], "fc ab"),
        (LINEAR, [LINEAR, mine, linear], [["fc", "m", "l"], ["fc", "m", "l_1"]], "fc ab"),
        (LINEAR, [LINEAR, "aten.add.Tensor"], [["fc", "l"], ["fc", "l_1"]], "fc ab"),
        (mine, [mine, linear], [["fc", "l"], ["fc", "l_1"]], "fc ab"),
        (lstm, [lstm, "aten.mul.Tensor"], [["r", "l"], ["r", "l_1"]], "r ab"),
        (sequential, [sequential, LINEAR, linear], [["s", "0", "l"], ["s", "1", "l"]], "s ab"),
        (linear, [LINEAR, linear], [["fc"], ["fd"]], "a a, b b"),
        (LINEAR, [LINEAR, linear], [["fc"], ["fd"]], "fc a, fd b"),
        (aten, [LINEAR, linear], [["fc", "l"], ["fc", "l_1"]], "l a, l_1 b"),
        ("other.linear", [LINEAR, "other.linear.default"], [["fc", "l"], ["fc", "l"]], ""),
        ("linear", [LINEAR, linear], [["fc", "l"], ["fc", "l"]], ""),
    ):
        of = model("g (float[2] x) => (float[2] b) { a = Neg(x)  b = Neg(a) }")
        for node, names in zip(of.main.nodes, scopes, strict=True):
            of.main.set_metadata(node, {HIERARCHY: str(classes), SCOPES: str(names)})
        found = get_source_partitions(of, [source]).get(source, [])
        said = ", ".join(f"{part.scope} {''.join(labels(part.nodes))}" for part in found)
        assert said == expected, (source, classes, scopes)
