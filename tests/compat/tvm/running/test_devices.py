"""Devices by TVM's names, and `relay.annotation.on_device`."""

from typing import Any

import pytest

from tests.recorded import assert_values
from tests.small import parsed
from tiered import Model
from tiered.compat import tvm
from tiered.compat.tvm.running import devices
from tiered.compat.tvm.running.devices import Device, name_of_device, on_device
from tiered.support.errors import ModelError, UsageError
from tiered.testing import parse


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("cpu", 1),
        ("llvm", 1),
        ("llvm -mcpu=skylake", 1),
        ("cuda", 2),
        ("gpu", 2),
        ("opencl", 4),
        ("vulkan", 7),
        ("metal", 8),
        ("rocm", 10),
        (10, 10),
        (1, 1),
    ],
)
def test_devices_have_the_types_of_dlpack(given: int | str, kind: int) -> None:
    assert devices.device(given) == Device(kind, 0)
    assert devices.device(given, 3) == Device(kind, 3)


@pytest.mark.parametrize("given", ["", "  ", "tpu", "CPU"])
def test_an_unknown_device_is_an_error_that_lists_all(given: str) -> None:
    with pytest.raises(UsageError, match=f"there is no device '{given}' .*cpu, cuda, .*llvm, gpu"):
        devices.device(given)


@pytest.mark.parametrize("kind", [0, 3, 99])
def test_an_unknown_type_is_an_error_that_lists_all(kind: int) -> None:
    with pytest.raises(UsageError, match=f"there is no device type {kind}: 1 is cpu, 2 is cuda"):
        devices.device(kind)
    with pytest.raises(UsageError, match="there is no device type"):
        name_of_device(Device(kind, 1))


def test_processors_have_functions() -> None:
    assert devices.cpu() == Device(1, 0)
    assert devices.cpu(2) == Device(1, 2)
    assert devices.cuda(1) == devices.gpu(1) == Device(2, 1)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("mine", "mine"),
        ("", ""),
        (1, "cpu"),
        (Device(2), "cuda"),
        (Device(2, 1), "cuda:1"),
        (Device(1, 0), "cpu"),
    ],
)
def test_a_device_has_a_name(given: Any, name: str) -> None:
    assert name_of_device(given) == name


def test_nodes_and_values_are_marked() -> None:
    model = parsed("(float[2] x) => (float[2] y) { a = Neg(x)  y = Abs(a) }")
    neg, last = model.main.nodes
    model.main.set_metadata(neg, {"note": "kept"})
    assert on_device(neg, 2, constrain_body=True) is neg
    assert on_device(last.output, devices.cuda(1)) is last.output
    assert neg.metadata == {"note": "kept", "tiered.device": "cuda"}
    assert last.metadata == {"tiered.device": "cuda:1"}
    with pytest.raises(UsageError, match="on_device: no node computes "):
        on_device(model.main.inputs[0], "cpu")
    model.set_ir_version(9)
    with pytest.raises(ModelError):
        on_device(neg, "cpu")


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("compiler_begin", "regions are marks of nodes here: tvm.transform.AnnotateTarget"),
        ("compiler_end", "regions are marks"),
        ("subgraph_start", "regions are marks"),
        ("subgraph_end", "regions are marks"),
        ("checkpoint", "recompute"),
        ("stop_fusion", "FuseOps takes the nodes of a backend"),
    ],
)
def test_annotations_that_are_no_nodes_say_what_does_the_same(name: str, instead: str) -> None:
    refuse = getattr(devices, name)
    assert refuse.__name__ == name
    with pytest.raises(UsageError, match=f"^relay.annotation.{name} makes no node: .*{instead}"):
        refuse("x", compiler="npu")
    with pytest.raises(AttributeError, match="has no attribute 'stop_fusions'"):
        devices.stop_fusions  # noqa: B018  # raises


def test_devices_are_annotated_and_propagate() -> None:
    text = """(float[2] x) => (float[2] y, float[2] z) {
        a = Neg(x) b = Abs(a) c = Sin(b) y = Cos(c) z = Exp(x) }"""

    def devices(**options: Any) -> list[str]:
        model = Model.from_proto(parse(text))
        first, third = model.main.nodes[0], model.main.nodes[2]
        value = first.output
        assert tvm.relay.annotation.on_device(value, tvm.cuda(0)) is value
        tvm.relay.annotation.on_device(third, tvm.device("cuda"))
        tvm.transform.RewriteAnnotatedOps(tvm.cpu(), **options)(model)
        return [node.metadata["tiered.device"] for node in model.main.nodes]

    assert devices() == ["cuda", "cuda", "cuda", "cpu", "cpu"]
    assert devices(propagate=False) == ["cuda", "cpu", "cuda", "cpu", "cpu"]
    assert tvm.Device(2, 1) == tvm.gpu(1)
    with pytest.raises(UsageError, match="no device type 99"):
        tvm.device(99)
    with pytest.raises(UsageError, match="no device 'tpu'"):
        tvm.device("tpu")
    with pytest.raises(UsageError, match="no node computes"):
        tvm.relay.annotation.on_device(Model.from_proto(parse(text)).main.inputs[0], "cpu")


def test_devices_are_recorded() -> None:
    def marked(device: Any, *, at: str = "y", ir: int = 10) -> object:
        of = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
        of.set_ir_version(ir)
        value, node = of.main.value(at), of.main.nodes[0]
        assert value is not None
        given = node if at == "y" else value
        return on_device(given, device) is given, of.main.nodes[0].metadata

    names = {**vars(devices), "d": devices, "marked": marked, "Device": Device}
    assert_values(__file__, names)
