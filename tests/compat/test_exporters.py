"""Steps of other tools' workflows: a pass of Olive, and a step after the exporters of optimum."""

import importlib
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
from tiered.compat.optimum import optimize_folder, post_process_exported_models

WANTED = ["Relu", "Neg", "Abs"]


def saved(path: Path) -> Path:
    onnx.save(proto(), path)
    return path


def test_the_step_of_optimum_gives_back_what_it_got(tmp_path: Path) -> None:
    saved(tmp_path / "encoder.onnx")
    saved(tmp_path / "decoder.onnx")
    configs = {"encoder": (object(), object())}
    given = (tmp_path, configs, ["encoder.onnx", "decoder.onnx"])
    assert post_process_exported_models(*given, opt_level=2) == given[1:]
    assert [ops(onnx.load(tmp_path / f"{name}.onnx")) for name in ("encoder", "decoder")] == [
        WANTED,
        WANTED,
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["decoder.onnx", "encoder.onnx"]


def test_a_folder_is_optimised_in_place(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    saved(tmp_path / "part" / "a.onnx")
    found = optimize_folder(tmp_path, verify="final")
    assert {name: (each.before.nodes, each.after.nodes) for name, each in found.items()} == {
        "part/a.onnx": (4, 3)
    }
    with pytest.raises(tiered.ModelError, match="no model in"):
        optimize_folder(tmp_path / "part" / "none")


@pytest.mark.parametrize("external", [False, True])
def test_weights_stay_whole(tmp_path: Path, *, external: bool) -> None:
    model = proto("g (float[8,8] x) => (float[8,8] y) { a = Identity(x)  y = MatMul(a, w) }")
    weight = np.arange(64, dtype=np.float32).reshape(8, 8)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=external, size_threshold=0,
              location="m.weights")  # fmt: skip
    optimize_folder(tmp_path)
    made = onnx.load(tmp_path / "m.onnx")
    assert ops(made) == ["MatMul"]
    assert np.array_equal(numpy_helper.to_array(made.graph.initializer[0]), weight)


def test_a_failure_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.onnx")
    before = path.read_bytes()
    with pytest.raises(tiered.TargetError):
        optimize_folder(tmp_path, expect=["nodes<=1"])
    assert path.read_bytes() == before


@pytest.fixture
def olive(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stand in for what a pass of Olive imports; return the pass."""

    class Handler:
        def __init__(self, model_path: str) -> None:
            self.model_path = model_path

    class Pass:
        def run(self, model: Handler, config: Any, output_model_path: str) -> Handler:
            return self._run_for_config(model, config, output_model_path)  # type: ignore[attr-defined, no-any-return]  # of the subclass

    def param(**fields: Any) -> SimpleNamespace:
        return SimpleNamespace(**fields)

    contents: dict[str, dict[str, Any]] = {
        "olive": {},
        "olive.hardware": {},
        "olive.hardware.accelerator": {"AcceleratorSpec": object},
        "olive.model": {"ONNXModelHandler": Handler},
        "olive.passes": {"Pass": Pass},
        "olive.passes.pass_config": {"BasePassConfig": object, "PassConfigParam": param},
    }
    for name, members in contents.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "tiered.compat.olive", raising=False)
    yield importlib.import_module("tiered.compat.olive")
    sys.modules.pop("tiered.compat.olive", None)


def test_the_pass_of_olive_optimises_a_handler(olive: Any, tmp_path: Path) -> None:
    made = olive.TieredOptimization()
    options = made._default_config(None)
    assert options["opt_level"].default_value == 3
    assert all(option.description for option in options.values())
    config = SimpleNamespace(**{name: each.default_value for name, each in options.items()})
    model = olive.ONNXModelHandler(str(saved(tmp_path / "a.onnx")))
    for output, file in (("out", "out/a.onnx"), ("b.onnx", "b.onnx")):
        result = made.run(model, config, str(tmp_path / output))
        assert result.model_path == str(tmp_path / file)
        assert ops(onnx.load(result.model_path)) == WANTED


def test_the_options_of_the_pass_are_settings_of_optimize(olive: Any) -> None:
    from tiered.pipeline.optimize import Settings

    assert set(olive.OPTIONS) <= set(Settings.__annotations__)


def test_the_entry_of_the_page_names_the_class(olive: Any) -> None:
    page = Path(__file__).parents[2].joinpath("docs", "ci.md").read_text(encoding="utf-8")
    assert f"{olive.TieredOptimization.__module__}.TieredOptimization" in page
