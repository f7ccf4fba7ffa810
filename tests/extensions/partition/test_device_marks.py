"""Devices and stages of nodes: cuts, what is between, and stages that never decrease."""

from collections.abc import Mapping

import onnx
import pytest

from tests.extensions.partition.graphs import labels, model
from tiered import Model, ModelError, UsageError
from tiered.extensions.partition.device_marks import (
    check_stages,
    device_partitions,
    device_proto,
    mark_devices,
)
from tiered.graph.core.marks import DEVICE, STAGE

# a and b are before c; d is beside; y is after all.
TEXT = """g (float[2] x) => (float[2] y) {
    k = Constant<value_floats=[1.0, 2.0]>() a = Neg(x)  b = Add(a, k)  c = Abs(b)  d = Sin(x)
    y = Add(c, d) }"""


def marks(of: Model, key: str) -> str:
    """Return the mark of each node, "." for none."""
    return "".join(node.metadata.get(key, ".") for node in of.main.nodes)


@pytest.mark.parametrize(
    ("sharding", "fallback", "expected"),
    [
        ({}, "", "......"),
        ({"c": "0"}, "", ".000.."),
        ({"b": "0", "y": "1"}, "", ".00111"),
        ({"y": "1", "b": "0"}, "", ".11111"),
        ({"b": "0"}, "9", ".00999"),
        ({"d": "2"}, "", "....2."),
    ],
)
def test_a_cut_is_of_its_ancestors_that_no_earlier_one_has(
    sharding: Mapping[str, str], fallback: str, expected: str
) -> None:
    of = model(TEXT)
    count = mark_devices(of, sharding, fallback_device=fallback)
    assert marks(of, DEVICE) == expected
    assert count == sum(mark != "." for mark in expected)
    assert marks(of, STAGE) == "......"


@pytest.mark.parametrize(
    ("pipelining", "expected"),
    [({"b": 0}, ".00111"), ({"b": 0, "c": 1}, ".00122"), ({"b": 3, "c": 3}, ".33344"),
     ({"y": 0}, ".00000")],
)  # fmt: skip
def test_nodes_after_the_last_cut_are_of_the_stage_after_the_largest(
    pipelining: Mapping[str, int], expected: str
) -> None:
    of = model(TEXT)
    mark_devices(of, None, pipelining)
    assert marks(of, STAGE) == expected


def test_a_second_time_changes_nothing_and_a_device_that_is_there_stays() -> None:
    of = model(TEXT)
    assert mark_devices(of, {"b": "0"}) == 2
    assert mark_devices(of, {"b": "0"}) == 0
    assert mark_devices(of, fallback_device="7") == 3
    assert marks(of, DEVICE) == ".00777"
    assert mark_devices(of, {"a": "5"}) == 1
    assert marks(of, DEVICE) == ".50777"


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ({"a": "0", "c": "0"}, ".000.."),
        ({"a": "0", "c": "1"}, ".0.1.."),
        ({"c": "0"}, "...0.."),
        ({"a": "0"}, ".0...."),
        ({"a": "0", "b": "1", "c": "0"}, ".010.."),
        ({"a": "0", "y": "0"}, ".000.0"),
        ({"a": "0", "d": "1", "y": "0"}, ".00010"),
    ],
)
def test_nodes_between_nodes_of_one_device_are_on_it(
    devices: Mapping[str, str], expected: str
) -> None:
    of = model(TEXT)
    for node in of.main.nodes:
        if node.label in devices:
            of.main.set_metadata(node, {DEVICE: devices[node.label]})
    mark_devices(of, propagate=True)
    assert marks(of, DEVICE) == expected


def test_nothing_is_propagated_unless_asked_for() -> None:
    of = model(TEXT)
    for at in (1, 3):
        of.main.set_metadata(of.main.nodes[at], {DEVICE: "0"})
    assert mark_devices(of) == 0


def test_a_cut_at_no_node_is_an_error_with_a_hint() -> None:
    with pytest.raises(UsageError, match="the main graph has no node 'abs'"):
        mark_devices(model(TEXT), {"abs": "0"})
    named = model(TEXT.replace("c = Abs", "[absolute] c = Abs"))
    with pytest.raises(UsageError, match=r"no node 'absolut'; did you mean 'absolute'\?"):
        mark_devices(named, None, {"absolut": 0})


@pytest.mark.parametrize(
    ("stages", "reason"),
    [
        ({"a": "1", "b": "0"}, "'b' of stage 0 needs 'a' of stage 1; expected stages that never"),
        ({"a": "1", "c": "0"}, "'c' of stage 0 needs 'a' of stage 1"),
        ({"a": "2", "d": "1", "y": "1"}, "'y' of stage 1 needs 'a' of stage 2; expected stages"),
        ({"a": "x"}, "'a' has tiered.stage 'x'; expected a whole number"),
        ({"a": "--3"}, "'a' has tiered.stage '--3'; expected a whole number"),
        ({"a": "1.5"}, "expected a whole number"),
        ({"a": ""}, "expected a whole number"),
        ({"a": "-"}, "expected a whole number"),
    ],
)
def test_stages_are_numbers_that_never_decrease(stages: Mapping[str, str], reason: str) -> None:
    of = model(TEXT)
    for node in of.main.nodes:
        if node.label in stages:
            of.main.set_metadata(node, {STAGE: stages[node.label]})
    with pytest.raises(ModelError, match=reason):
        check_stages(of.main)
    of.set_ir_version(11)
    with pytest.raises(ModelError, match=reason):
        device_proto(of)


@pytest.mark.parametrize("stages", [{"a": "0", "c": "0", "y": "1"}, {"a": "-1", "b": "0"}, {}])
def test_equal_and_negative_stages_are_fine(stages: Mapping[str, str]) -> None:
    of = model(TEXT)
    for node in of.main.nodes:
        if node.label in stages:
            of.main.set_metadata(node, {STAGE: stages[node.label]})
    check_stages(of.main)


def test_marks_that_cannot_be_are_not_left_behind() -> None:
    of = model(TEXT)
    before = of.to_proto()
    with pytest.raises(ModelError, match="'c' of stage 0 needs 'b' of stage 2"):
        mark_devices(of, {"y": "0"}, {"b": 2, "c": 0})
    assert of.to_proto() == before


def test_an_old_ir_version_has_no_metadata() -> None:
    of = model(TEXT, '<ir_version: 9, opset_import: ["" : 21]>\n')
    with pytest.raises(ModelError, match=r"has IR version 9, .* which need 10"):
        mark_devices(of, {"a": "0"})


def test_a_partition_for_each_device_and_stage() -> None:
    of = model(TEXT)
    mark_devices(of, {"b": "gpu", "c": "npu"}, {"b": 0})
    of.main.set_metadata(of.main.nodes[4], {})
    found = [(part.target, labels(part.nodes)) for part in device_partitions(of)]
    assert found == [("gpu_0", ["a", "k", "b"]), ("npu_1", ["c"]), ("1", ["y"])]


def test_a_model_without_marks_has_no_partitions() -> None:
    assert device_partitions(model(TEXT)) == []


def test_device_configurations_as_onnx_defines_them() -> None:
    of = model(TEXT, '<ir_version: 11, opset_import: ["" : 21]>\n')
    mark_devices(of, {"b": "gpu", "y": "npu"}, {"b": 4})
    of.main.set_metadata(of.main.nodes[4], {STAGE: "5"})
    made = device_proto(of)
    onnx.checker.check_model(made)
    (configuration,) = made.configuration
    assert (configuration.name, configuration.num_devices) == ("tiered", 2)
    assert list(configuration.device) == ["gpu", "npu"]
    said = [
        [(entry.configuration_id, entry.pipeline_stage,
          [(spec.tensor_name, list(spec.device)) for spec in entry.sharding_spec])
         for entry in node.device_configurations]
        for node in made.graph.node
    ]  # fmt: skip
    assert said == [
        [], [("tiered", 4, [("a", [0])])], [("tiered", 4, [("b", [0])])],
        [("tiered", 5, [("c", [1])])], [("tiered", 5, [])], [("tiered", 5, [("y", [1])])],
    ]  # fmt: skip
    again = device_proto(Model.from_proto(made))
    assert len(again.configuration) == 1


def test_a_model_without_devices_is_on_one() -> None:
    of = model(TEXT, '<ir_version: 11, opset_import: ["" : 21]>\n')
    (configuration,) = device_proto(of).configuration
    assert (configuration.num_devices, list(configuration.device)) == (1, [])


def test_device_configurations_need_ir_version_11() -> None:
    with pytest.raises(ModelError, match="IR version 10, and device configurations need 11"):
        device_proto(model(TEXT))


PAIRS = """g (float[2] x) => (float[2] y, float[2] z) {
    k = Constant<value_floats=[1.0, 2.0]>()  a = Neg(x)  b = Add(a, k)  c = Abs(b)
    d = Sin(x)  e = Add(d, k)  f = Cos(e)  y = Neg(c)  z = Neg(f) }"""
MIXED = """g (float[2] x) => (float[2] y, float[2] z) {
    a = Neg(x)  b = Sin(x)  c = Add(a, b)  y = Neg(c)  z = Cos(c) }"""


def test_constants_join_no_nodes_and_two_devices_are_none() -> None:
    for text, devices, expected in (
        (PAIRS, {"a": "0", "c": "0", "d": "1", "f": "1"}, ".000111.."),
        (MIXED, {"a": "0", "b": "1", "y": "0", "z": "1"}, "01.01"),
    ):
        of = model(text)
        for node in of.main.nodes:
            if node.label in devices:
                of.main.set_metadata(node, {DEVICE: devices[node.label]})
        mark_devices(of, propagate=True)
        assert marks(of, DEVICE) == expected, text


def test_a_cut_comes_before_the_mark_that_is_there() -> None:
    of = model(TEXT)
    for node, device in zip(of.main.nodes[1:4], "020", strict=True):
        of.main.set_metadata(node, {DEVICE: device})
    mark_devices(of, {"a": "1"}, propagate=True)
    assert marks(of, DEVICE) == ".120.."


def test_a_device_without_a_stage_and_a_marked_constant() -> None:
    of = model(TEXT, '<ir_version: 11, opset_import: ["" : 21]>\n')
    for at in (0, 1):
        of.main.set_metadata(of.main.nodes[at], {DEVICE: "gpu"})
    assert [labels(part.nodes) for part in device_partitions(of)] == [["a"]]
    entry = device_proto(of).graph.node[1].device_configurations[0]
    assert (entry.HasField("pipeline_stage"), len(entry.sharding_spec)) == (False, 1)
