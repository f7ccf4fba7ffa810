"""The JSON of `tiered optimize --json`: one object for each run."""

import importlib.metadata
import json
import math
import platform
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.cli.conftest import SMALL
from tests.small import parsed
from tiered import Graph, Value, function_pass, op, rewrite, var
from tiered.cli.outcome import Failed, Outcome
from tiered.cli.output.record import (
    PACKAGES,
    _comparison,
    _of_failure,
    finite,
    fused_operators,
    peak_memory,
    record_of,
    versions,
)
from tiered.cli.prepared import PreparedRun
from tiered.cli.shared_options import OptimizeOptions
from tiered.context import PassContext
from tiered.support import memory_limit
from tiered.testing import parse

GELU = """(float[2,3] x) => (float[2,3] y)
    <float h = {0.5}, float o = {1}, float r = {1.41421354}> {
    d = Div(x, r)  e = Erf(d)  s = Add(e, o)  m = Mul(x, s)  y = Mul(m, h) }"""


def prepared(**options: Any) -> PreparedRun:
    return PreparedRun.of(OptimizeOptions(**options))


def recorded(text: str = SMALL, **settings: Any) -> dict[str, Any]:
    """Return the record of a run on a model."""
    result = tiered.optimize_model(parsed(text), **settings)
    options = prepared(opt_level=settings.get("opt_level", 2))
    found = record_of(Outcome("in.onnx", "out.onnx", options, result))
    json.dumps(found, allow_nan=False)
    return found


def test_a_run_has_its_files_level_and_statistics() -> None:
    found = recorded()
    assert (found["input"], found["output"], found["opt_level"]) == ("in.onnx", "out.onnx", 2)
    assert (found["error"], found["exit_code"]) == (None, 0)
    assert found["before"]["operators"] == {"Identity": 2, "Add": 1}
    assert (found["before"]["nodes"], found["before"]["parameters"]) == (3, 4)
    assert (found["after"]["nodes"], found["after"]["parameters"]) == (1, 2)
    assert found["after"]["bytes"] > 0
    assert found["interface"] == []
    assert (found["overridable"], found["fused"]) == ([], {})
    unverified = ("verified", "verdict", "verification", "ways", "certified")
    assert [found[name] for name in unverified] == [False, None, None, [], None]


def test_each_decision_about_a_pass_is_told_and_none_about_a_pipeline() -> None:
    found = recorded(passes="tidy(eliminate_identity),fuse_gelu")["passes"]
    assert [each["name"] for each in found] == ["eliminate_identity", "fuse_gelu"]
    first, second = found
    assert (first["ran"], first["changed"], first["rewrites"]) == (True, True, 2)
    assert (second["ran"], second["changed"], second["rewrites"]) == (True, False, 0)
    assert all(each["seconds"] >= 0 for each in found)
    disabled = recorded(passes="eliminate_identity", disabled=["eliminate_identity"])["passes"][0]
    assert (disabled["ran"], disabled["rewrites"]) == (False, 0)
    assert "disabled" in disabled["reason"]


def test_operators_that_fusions_made_are_counted_the_most_first() -> None:
    found = recorded(GELU, opt_level=3)
    assert found["fused"] == {"Gelu": 1}
    both = GELU.replace("=> (float[2,3] y)", "=> (float[2,3] y, float[2,3] z)").replace(
        "y = Mul(m, h) }", "y = Mul(m, h)  i = Identity(x)  q = Sigmoid(i)  z = Mul(q, i) }"
    )
    result = tiered.optimize_model(parsed(both, opset=24), opt_level=3)
    made = fused_operators(result)
    assert made["Gelu"] == 1
    assert list(made.items()) == sorted(made.items(), key=lambda item: (-item[1], item[0]))
    assert recorded(GELU, opt_level=2)["fused"] == {}


def test_what_was_there_before_is_no_fusion() -> None:
    @rewrite(op.Neg(var.x), opt_level=0)
    def fuse_nothing(graph: Graph, x: Value) -> Value:
        """Of no meaning: it makes an operator that fusions make too."""
        made: Value = graph.op.Abs(x)
        return made

    text = "(float[2] x) => (float[2] y) { a = Neg(x)  y = Gelu(a) }"
    assert fused_operators(tiered.optimize_model(parsed(text), passes=[fuse_nothing])) == {}


def test_a_changed_interface_is_told() -> None:
    found = recorded("(float[n,2] x) => (float[n,2] y) { y = Neg(x) }", dims={"n": 4})
    assert found["interface"]
    assert all("float" in line for line in found["interface"])


def test_remarks_have_their_nodes() -> None:
    @function_pass(opt_level=0)
    def tells(graph: Graph, ctx: PassContext) -> None:
        """Say something."""
        ctx.remark("seen")

    (remark,) = [each for each in recorded(passes=[tells])["remarks"] if each["reason"] == "seen"]
    assert remark == {
        "kind": "analysis", "pass": "tells", "reason": "seen", "count": 1, "op_type": "",
        "nodes": [],
    }  # fmt: skip


def test_a_verified_run_has_its_comparisons_and_ways() -> None:
    found = recorded(verify="final", inputs=[{"x": np.ones((3, 2), np.float32)}])
    assert found["verified"] is True
    assert found["verdict"] == {"word": "yes", "why": ""}
    (comparison,) = found["verification"]
    assert (comparison["numerics"], comparison["dims"], comparison["rules"]) == (
        "exact",
        {},
        {"x": "given"},
    )
    assert comparison["outputs"] == [{"name": "y", "max_abs": 0.0, "max_rel": 0.0, "limit": None}]
    (way,) = found["ways"]
    assert way.keys() == {"pass", "by", "nodes", "inputs", "judge", "why", "left_out"}
    assert (way["by"], way["inputs"], way["left_out"]) == ("model", "given", [])


def test_a_structure_has_no_comparison() -> None:
    found = recorded(verify="structure")
    assert (found["verified"], found["verification"]) == (False, None)
    assert found["verdict"]["word"] == "structure only"


def test_a_certified_run_has_its_proofs() -> None:
    found = recorded(certify=True)["certified"]
    assert found["rewrites"] == sum(found["counts"].values()) > 0
    assert found["left"] == []
    assert set(found["counts"]) == {"bits"}


def test_a_failure_before_the_result_has_what_ran(tmp_path: Path) -> None:
    source = tmp_path / "in.onnx"
    onnx.save(parse(SMALL), source)
    result = tiered.optimize_model(parsed(SMALL), passes="tidy(eliminate_identity)")
    failed = Failed("it differs", 3, result.report.results)
    found = record_of(Outcome(str(source), None, prepared(opt_level=1), None, failed))
    assert found.keys() == recorded().keys()
    assert (found["error"], found["exit_code"], found["output"]) == ("it differs", 3, None)
    assert (found["before"]["bytes"], found["after"]) == (source.stat().st_size, None)
    assert [each["name"] for each in found["passes"]] == ["eliminate_identity"]
    assert found["seconds"] == found["passes"][0]["seconds"]
    empty = ("interface", "fused", "ways", "overridable", "remarks")
    assert [found[name] for name in empty] == [[], {}, [], [], []]
    nothing = ("verdict", "verification", "certified")
    assert [found[name] for name in nothing] == [None, None, None]
    assert found["verified"] is False


def test_a_failure_after_the_result_has_both() -> None:
    result = tiered.optimize_model(parsed(SMALL))
    failed = Failed("expected Neg", 4, ())
    found = record_of(Outcome("in.onnx", None, prepared(), result, failed))
    assert (found["error"], found["exit_code"]) == ("expected Neg", 4)
    assert found["after"]["nodes"] == 1


def test_a_failure_before_any_pass_has_no_passes(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    onnx.save(parse(SMALL), file)
    outcome: Any = SimpleNamespace(failed=None, source=str(file))
    found = _of_failure(outcome)
    assert (found["passes"], found["seconds"], found["after"]) == ([], 0, None)


def test_a_limit_that_is_none_is_null() -> None:
    outputs = [
        SimpleNamespace(name=name, max_abs=0.5, max_rel=float("inf"), limit=limit)
        for name, limit in (("y", ""), ("z", "rtol 0.1"))
    ]
    comparison: Any = SimpleNamespace(numerics=SimpleNamespace(value="lossy"), outputs=outputs)
    sample: Any = SimpleNamespace(inputs=SimpleNamespace(dims={"n": 2}, rules=["a"]))
    assert _comparison(comparison, sample) == {
        "dims": {"n": 2}, "rules": ["a"], "numerics": "lossy", "outputs": [
            {"name": "y", "max_abs": 0.5, "max_rel": None, "limit": None},
            {"name": "z", "max_abs": 0.5, "max_rel": None, "limit": "rtol 0.1"},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1.5, 1.5),
        (0.0, 0.0),
        (math.inf, None),
        (-math.inf, None),
        (math.nan, None),
        (np.float32(2), 2.0),
    ],
)
def test_json_has_finite_numbers_only(number: float, expected: float | None) -> None:
    found = finite(number)
    assert found == expected
    assert found is None or type(found) is float


def test_versions_are_those_of_the_packages() -> None:
    found = versions()
    assert (found["tiered"], found["python"]) == (tiered.__version__, platform.python_version())
    assert {name: found[name] for name in PACKAGES} == {
        name: importlib.metadata.version(name) for name in PACKAGES
    }
    assert len(found) == 2 + len(PACKAGES)


def test_the_peak_is_that_of_the_limit_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "limited_peak", lambda: 12345)
    assert peak_memory() == 12345
    monkeypatch.setattr(memory_limit, "limited_peak", lambda: None)
    peak = peak_memory()
    assert peak is not None
    assert peak > 1 << 20
    monkeypatch.setattr("resource.getrusage", lambda who: SimpleNamespace(ru_maxrss=3))
    for platform_, expected in (("darwin", 3), ("linux", 3072)):
        monkeypatch.setattr("sys.platform", platform_)
        assert peak_memory() == expected
    monkeypatch.setattr("sys.platform", "win32")
    assert peak_memory() is None
