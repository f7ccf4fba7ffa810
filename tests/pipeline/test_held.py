"""`optimize` takes and returns what people hold: bytes, onnx_ir.Model, torch.onnx.ONNXProgram."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tiered
from tests.small import ops, proto


class Model:
    """Stands in for the Model of onnx_ir, which holds the model in its own way."""

    def __init__(self, made: onnx.ModelProto) -> None:
        self.made = made
        self.graph = SimpleNamespace(initializers={})
        self.base_dir = ""


Model.__module__ = "onnx_ir._core"


class ExternalTensor:
    def __init__(self, base_dir: Path) -> None:
        self.base_dir = base_dir


class ONNXProgram:
    """Stands in for the program of torch."""

    def __init__(self, model: Any, exported_program: object) -> None:
        self.model, self.exported_program = model, exported_program


@pytest.fixture
def ir(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made: Any = ModuleType("onnx_ir")
    made.to_proto = lambda model: model.made
    made.from_proto = Model
    made.ExternalTensor = ExternalTensor

    def set_base_dir(graph: Any, folder: str) -> None:
        graph.base_dir = folder

    made.external_data = SimpleNamespace(set_base_dir=set_base_dir)
    monkeypatch.setitem(sys.modules, "onnx_ir", made)
    return made  # type: ignore[no-any-return]  # a module with attributes


WANTED = ["Relu", "Neg", "Abs"]


def test_bytes_become_bytes(tmp_path: Path) -> None:
    data = proto().SerializeToString()
    for given in (data, bytearray(data), memoryview(data)):
        made = tiered.optimize(given)
        assert type(made) is bytes
        assert ops(onnx.ModelProto.FromString(made)) == WANTED
    summary = tiered.optimize(data, tmp_path / "out.onnx")
    assert summary.out == str(tmp_path / "out.onnx")
    assert tiered.optimize_model(data).model.main.nodes_of("Abs")


def test_bytes_of_no_model_are_an_error() -> None:
    for data, said in ((b"\xff" * 9, "9 bytes"), (b"\xff", "1 byte")):
        with pytest.raises(tiered.ModelError) as caught:
            tiered.optimize(data)
        assert str(caught.value) == f"not an ONNX model: {said} that cannot be parsed"
    with pytest.raises(tiered.ModelError, match="empty"):
        tiered.optimize(b"")


@pytest.mark.usefixtures("ir")
def test_a_model_of_onnx_ir_becomes_one() -> None:
    given = Model(proto())
    made = tiered.optimize(given)
    assert type(made) is Model
    assert ops(made.made) == WANTED
    assert len(given.made.graph.node) == 4  # the given one is not changed


@pytest.mark.usefixtures("ir")
def test_a_program_of_torch_becomes_one() -> None:
    exported = object()
    made = tiered.optimize(ONNXProgram(Model(proto()), exported))
    assert type(made) is ONNXProgram
    assert made.exported_program is exported
    assert ops(made.model.made) == WANTED


@pytest.mark.usefixtures("ir")
def test_external_weights_stay_in_their_folder(tmp_path: Path) -> None:
    model = proto("g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { a = Identity(x) "
                  "y = Add(a, w) }")  # fmt: skip
    weight = model.graph.initializer[0]
    weight.CopyFrom(numpy_helper.from_array(np.array([1, 2], np.float32), "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0,
              location="weights")  # fmt: skip
    given = Model(onnx.load(tmp_path / "m.onnx", load_external_data=False))
    given.graph.initializers["w"] = SimpleNamespace(const_value=ExternalTensor(tmp_path))
    made = tiered.optimize(given)
    assert ops(made.made) == ["Add"]
    assert made.graph.base_dir == str(tmp_path)
    assert made.made.graph.initializer[0].external_data
    other = SimpleNamespace(const_value=ExternalTensor(tmp_path.parent))
    given.graph.initializers["v"] = other
    with pytest.raises(tiered.ModelError, match="external data in 2 folders"):
        tiered.optimize(given)


def of_class(name: str, module: str) -> object:
    """Return an object of a class of a name."""
    return type(name, (Model,), {"__module__": module})(proto())


@pytest.mark.usefixtures("ir")
@pytest.mark.parametrize(
    "wrong",
    [
        None, 3, ["a.onnx"], Model,
        of_class("Graph", "onnx_ir._core"), of_class("Model", "onnx_irs"),
        ONNXProgram(of_class("Graph", "onnx_ir"), None), ONNXProgram(None, None),
        SimpleNamespace(model=of_class("Model", "onnx_ir"), exported_program=None),
    ],
)  # fmt: skip
def test_other_things_are_an_error_that_says_what_is_taken(wrong: object) -> None:
    with pytest.raises(tiered.UsageError, match="takes a path, an onnx"):
        tiered.optimize(wrong)


def test_the_real_package_is_taken() -> None:
    ir = pytest.importorskip("onnx_ir")
    made = tiered.optimize(ir.from_proto(proto()))
    assert isinstance(made, ir.Model)
    assert [node.op_type for node in made.graph] == WANTED
