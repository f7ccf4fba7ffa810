"""The command line of onnx-passes: passes, configuration, reference outputs, state, text."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.recorded import assert_values
from tiered.compat import onnx_passes
from tiered.compat.onnx_passes.command_line import main
from tiered.testing import parse

TEXT = "(float[2] x) => (float[2] y) { a = Identity(x) b = Relu(a) y = Relu(b) }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a model, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    onnx.save(parse(TEXT), tmp_path / "model.onnx")
    return tmp_path


def ops(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


def test_passes_are_arguments(folder: Path) -> None:
    assert main(["-o", "out.onnx", "model.onnx", "eliminate", "convert-opset22"]) == 0
    assert ops(folder / "out.onnx") == ["Relu"]
    assert onnx.load(folder / "out.onnx").opset_import[0].version == 22
    assert ops(folder / "model.onnx") == ["Identity", "Relu", "Relu"]


def test_the_result_is_printed_without_a_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model.onnx", "eliminate_identity"]) == 0
    said = capsys.readouterr().out
    assert "y = Relu (b)" in said
    assert "Identity" not in said


@pytest.mark.parametrize("suffix", ["yaml", "json", "toml"])
def test_a_configuration_may_be_of_three_formats(folder: Path, suffix: str) -> None:
    texts = {
        "yaml": "passes: [eliminate_identity]\nexhaustive: true\nverify: true\n",
        "json": '{"passes": ["eliminate_identity"], "exhaustive": true, "verify": true}',
        "toml": 'passes = ["eliminate_identity"]\nexhaustive = true\nverify = true\n',
    }
    if suffix == "yaml":
        pytest.importorskip("yaml")
    (folder / f"c.{suffix}").write_text(texts[suffix], encoding="utf-8")
    assert main(["-c", f"c.{suffix}", "-o", "out.onnx", "-s", "state.json", "model.onnx"]) == 0
    assert ops(folder / "out.onnx") == ["Relu", "Relu"]
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    assert {"pass": "eliminate_identity", "changed": True, "error": None} in state["history"]


def test_modules_are_imported_and_passes_have_options(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = """from tiered.compat.onnx_passes import RewriteRulePass, register

@register("mine")
class DropRelu(RewriteRulePass):
    def pattern(self, op, x):
        return op.Relu(op.Relu(x))

    def rewrite(self, op, x):
        return op.Relu(x)
"""
    (folder / "passes_of_test_onnx.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    config = {
        "imports": "passes_of_test_onnx",
        "passes": ["mine", "fold_constant"],
        "fold_constants": {"max_growth": "0"},
        "logging": {"verbose": True, "checkpoint": "steps"},
    }
    (folder / "c.json").write_text(json.dumps(config), encoding="utf-8")
    assert main(["-c", "c.json", "-o", "out.onnx", "model.onnx", "eliminate_identity"]) == 0
    sys.modules.pop("passes_of_test_onnx")
    assert ops(folder / "out.onnx") == ["Relu"]
    assert "DropRelu: changed" in capsys.readouterr().err
    assert (folder / "steps" / "000-input.onnx").exists()


def test_outputs_are_held_against_a_reference(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(folder / "x.npy", np.array([-1, 2], np.float32))
    np.save(folder / "y.npy", np.array([0, 2], np.float32))
    np.save(folder / "wrong.npy", np.array([0, 2.01], np.float32))

    def run(out: str, tolerance: float = 0.0) -> int:
        config = {
            "reference": {"inp": ["x.npy"], "out": [out]},
            "verify": {"tolerance": {"atol": tolerance}},
        }
        (folder / "c.json").write_text(json.dumps(config), encoding="utf-8")
        return main(["-c", "c.json", "-o", "out.onnx", "model.onnx", "eliminate_identity"])

    assert run("wrong.npy") == 3
    assert "y is not as the reference output" in capsys.readouterr().err
    assert not (folder / "out.onnx").exists()
    assert run("wrong.npy", 0.1) == 0
    assert run("y.npy") == 0


def test_a_state_is_written_after_a_failure(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["-s", "state.json", "model.onnx", "eliminate_identity", "convert-opset99"]
    assert main(arguments) != 0
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    assert state["history"][0]["pass"] == "eliminate_identity"
    assert state["history"][-1]["error"]
    assert "onnx-passes: error: model.onnx" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ('{"pases": []}', "'pases' is unknown; did you mean 'passes'"),
        ('{"reference": {"input": []}}', "reference.input is unknown"),
        ('{"passes": [1]}', "passes is a list of texts"),
        (
            '{"passes": ["eliminate_identity"], "fuse_gelu": {"a": 1}}',
            "fuse_gelu has no option 'a'",
        ),
        (
            '{"onnxruntime": {"providers": ["CUDAExecutionProvider"]}}',
            "not 'CUDAExecutionProvider'",
        ),
        ('{"onnxruntime": {"threads": 1}}', "onnxruntime.threads is unknown"),
        ('{"verify": {"tolerances": {}}}', "verify.tolerances is unknown"),
        ('{"verify": {"metrics": {"cosine": 1}}}', "metrics has cosine: [lowest, highest]"),
        ('{"verify": {"metrics": {"cosin": [0, 1]}}, "passes": ["verify"]}', "no metric 'cosin'"),
        ('{"model_checker": {"check_custom_domain": true}}', "check_custom_domain cannot be True"),
        ('{"onnxruntime": {"full_context_dump": true}, "passes": ["verify"]}', "needs -o OUTPUT"),
        ('{"logging": 1}', "logging is a table of"),
        ("[]", "is no table of names"),
        ("{", "is no json"),
        ("{}", "no pass is named"),
        ('{"passes": ["no_such_pass"]}', "no pass named 'no_such_pass'"),
        ('{"imports": ["no_such_module_here"], "passes": ["verify"]}', "no_such_module_here"),
        ('{"passes": ["eliminate"], "reference": {"inp": [], "out": ["y.npy"]}}', "0 files"),
    ],
)
def test_what_is_wrong_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], config: str, said: str
) -> None:
    np.save(folder / "y.npy", np.zeros(2, np.float32))
    (folder / "c.json").write_text(config, encoding="utf-8")
    assert main(["-c", "c.json", "model.onnx"]) in (1, 2)
    assert said in capsys.readouterr().err


def test_files_that_are_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "none.json", "model.onnx"]) == 2
    assert "cannot read none.json" in capsys.readouterr().err
    assert main(["none.onnx", "eliminate"]) != 0
    assert "none.onnx" in capsys.readouterr().err


DEMO = """
imports: [ onnx_passes.passes.streamline.associative ]
reference:
  inp: [ inp.npy ]
  out: [ out.npy ]
model_checker:
  full_check: true
shape_inference: { }
onnxruntime:
  providers:
    - - CPUExecutionProvider
      - { }
  full_context_dump: true
verify:
  tolerance:
    atol: 1.0e-6
  metrics:
    max_abs_error: [ 0.0, 0.01 ]
logging:
  verbose: false
  checkpoint: false
  keep_intermediates: intermediate_models
exhaustive: false
"""
"""The keys of the configurations of onnx-passes's demonstrations."""


@pytest.mark.parametrize(
    "command",
    [
        "-c cfg.yaml model.onnx -o out.onnx cleanup shape-inference verify",
        "-c cfg.yaml -o out.onnx model.onnx shape-inference fold-constants "
        "lower-conv shape-inference fold-constants checker verify",
        "-c cfg.yaml -o out.onnx model.onnx import-qonnx inline-qonnx streamline checker verify",
        "-c cfg.yaml -o out.onnx model.onnx "
        "shape-inference reorder shape-inference cleanup checker verify",
        "-c cfg.yaml -o out.onnx model.onnx "
        "streamline-shapes shape-inference fold-constants cleanup checker verify",
        "-c cfg.yaml -o out.onnx model.onnx shape-inference cleanup link-ops checker verify",
    ],
)
def test_the_commands_of_the_demonstrations(folder: Path, command: str) -> None:
    pytest.importorskip("yaml")
    (folder / "cfg.yaml").write_text(DEMO, encoding="utf-8")
    np.save(folder / "inp.npy", np.array([-1, 2], np.float32))
    np.save(folder / "out.npy", np.array([0.001, 2.002], np.float32))
    assert main(command.split()) == 0
    assert len(ops(folder / "out.onnx")) <= 3
    assert "y" in np.load(folder / "out.onnx.npz")
    assert (folder / "intermediate_models").exists()


def _wrong(model: onnx.ModelProto) -> onnx.ModelProto:
    (last,) = (node for node in model.graph.node if node.output[0] == "y")
    last.op_type = "LeakyRelu"
    return model


@pytest.mark.parametrize(
    ("verify", "files", "code"),
    [
        (True, {}, 3),
        ({"tolerance": {"atol": 1e-3}}, {}, 3),
        ({"metrics": {"max_abs_error": [0.0, 1e-3]}}, {}, 3),
        ({"metrics": {"max_abs_error": [0.0, 100.0]}}, {}, 0),
        ({"metrics": {"max_abs_error": [0.0, 100.0], "cosine": [0.9999, 1.1]}}, {}, 3),
        (True, {"inp": ["positive.npy"]}, 0),
        (True, {"inp": ["negative.npy"]}, 3),
        ({"metrics": {"max_abs_error": [0.0, 0.1]}}, {"inp": ["negative.npy"]}, 0),
        ({"metrics": {"max_abs_error": [0.0, 0.01]}}, {"inp": ["negative.npy"]}, 3),
        ({"tolerance": {"atol": 0.1}}, {"inp": ["negative.npy"], "out": ["zeros.npy"]}, 0),
        ({"tolerance": {"atol": 0.01}}, {"inp": ["negative.npy"], "out": ["zeros.npy"]}, 3),
    ],
)
def test_verify_judges_by_the_configuration(
    folder: Path, verify: object, files: dict[str, list[str]], code: int
) -> None:
    """LeakyRelu is Relu where nothing is negative; of -2 it is -0.02."""
    tiered.register(
        tiered.proto_pass(_wrong, name="leaks", numerics="lossy", opt_level=None), replace=True
    )
    for name, number in (("positive", 2), ("negative", -2), ("zeros", 0)):
        np.save(folder / f"{name}.npy", np.full(2, number, np.float32))
    onnx.save(parse("(float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) y = Relu(b) }"), "m.onnx")
    config = {"verify": verify, "reference": files}
    (folder / "c.json").write_text(json.dumps(config), encoding="utf-8")
    assert main(["-c", "c.json", "-o", "out.onnx", "m.onnx", "leaks", "verify"]) == code


def test_the_modules_of_onnx_passes_are_imported() -> None:
    package = "tiered.compat.onnx_passes"
    passes = importlib.import_module(f"{package}.passes")
    assert passes.register is onnx_passes.register
    assert passes.verify.tolerance is onnx_passes.verify.tolerance
    base = importlib.import_module(f"{package}.passes.base")
    assert (base.Transformation, base.RewriteRulePass) == (
        onnx_passes.Transformation, onnx_passes.RewriteRulePass,
    )  # fmt: skip
    compose = importlib.import_module(f"{package}.passes.compose")
    assert compose.ComposePass is onnx_passes.ComposePass


def test_a_composition_has_names_groups_and_classes() -> None:
    @onnx_passes.verify.tolerance
    @onnx_passes.register()
    class DoubleRelu(onnx_passes.Transformation, onnx_passes.RewriteRulePass):
        @property
        def commute(self) -> bool:
            return True

        def pattern(self, op: Any, x: Any) -> Any:
            return op.Relu(op.Relu(x))

        def rewrite(self, op: Any, x: Any) -> Any:
            return op.Relu(x)

    @onnx_passes.verify.tolerance
    @onnx_passes.register()
    class Adapter(onnx_passes.Transformation, onnx_passes.ComposePass):
        __passes__ = ("shape-inference", "cleanup", DoubleRelu, "eliminate", "checker", "verify")

    made = tiered.optimize(parse(TEXT), passes="Adapter")
    assert [node.op_type for node in made.graph.node] == ["Relu"]


@pytest.mark.parametrize(
    ("name", "content"), [("none.npy", None), ("odd.npy", b"text"), ("a.npz", 3)]
)
def test_a_reference_that_cannot_be_read_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | int | None
) -> None:
    if isinstance(content, bytes):
        (folder / name).write_bytes(content)
    elif content is not None:
        np.savez(folder / name, x=content)
    config = {"verify": True, "reference": {"inp": [name]}}
    (folder / "config.json").write_text(json.dumps(config))
    assert main(["-c", "config.json", "-o", "out.onnx", "model.onnx", "eliminate", "verify"]) == 2
    assert name in capsys.readouterr().err
    assert not (folder / "out.onnx").exists()


def test_a_pass_of_an_imported_module_has_options_of_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = '''"""A pass of a module."""
import tiered

@tiered.module_pass(opt_level=None, name="rename_of_test")
def rename(model, ctx, *, to: str = "none"):
    """Rename the first node."""
    model.main.rename_node(model.main.nodes[0], to)

tiered.register(rename, replace=True)
'''
    (folder / "renaming_of_test.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    config = {"imports": "renaming_of_test", "passes": ["rename_of_test"]}
    for section, code in (({"rename_of_test": {"to": "mine"}}, 0), ({"rename_of_tset": {}}, 2)):
        (folder / "c.json").write_text(json.dumps({**config, **section}), encoding="utf-8")
        assert main(["-c", "c.json", "-o", "out.onnx", "model.onnx"]) == code
    sys.modules.pop("renaming_of_test")
    assert onnx.load(folder / "out.onnx").graph.node[0].name == "mine"
    assert "no pass named 'rename_of_tset'" in capsys.readouterr().err


def test_commands_are_recorded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(folder / "x.npy", np.array([1, 2], np.float32))
    np.save(folder / "y.npy", np.array([1, 2], np.float32))
    np.save(folder / "z.npy", np.array([1, 3], np.float32))

    def said(line: str, **config: Any) -> object:
        (folder / "c.json").write_text(json.dumps(config), encoding="utf-8")
        code = main([*line.split(), *(["-c", "c.json"] if config else [])])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    def state(*given: Any, **config: Any) -> object:
        return said(*given, **config)[0], json.loads((folder / "s").read_text())  # type: ignore[index]  # a tuple

    names = {"said": said, "steps": folder / "steps", "state": state,
             "ops": lambda: ops(folder / "o.onnx"),
             "written": lambda: sorted(np.load(folder / "o.onnx.npz"))}  # fmt: skip
    assert_values(__file__, names)
