"""Batches on this machine: results as of single runs, whatever becomes of a process."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.extensions.fleet.conftest import Make
from tiered.cli import main
from tiered.extensions.fleet import Command, FleetOptions, Result, read_manifest, run
from tiered.extensions.fleet.manifest import NAME
from tiered.support.errors import UsageError

O3 = Command("optimize", ("-O3",))


def batch(models: Path, out: Path, command: Command = O3, **options: object) -> dict[str, Result]:
    """Run a batch and return its results by the names of the models."""
    settings = FleetOptions(**{"jobs": 1, **options})  # type: ignore[arg-type]  # of the options
    results = run([str(models)], str(out), command, settings)
    return {os.path.basename(result.source): result for result in results}


def files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_results_are_those_of_single_runs(models: Path, make: Make, tmp_path: Path) -> None:
    for number in range(3):
        make(f"m{number}", number=number)
    weights = np.arange(4096, dtype=np.float32)
    large = onnx.load(make("sub/large"))
    large.graph.initializer.append(onnx.numpy_helper.from_array(weights, "k"))
    large.graph.node[1].input[1] = "k"
    large.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4096
    large.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4096
    onnx.save(large, models / "sub" / "large.onnx", save_as_external_data=True, location="w.bin")
    (models / "broken.onnx").write_bytes(b"no model")
    out, single = tmp_path / "out", tmp_path / "single"
    single.mkdir()
    found = batch(models, out, jobs=2)
    for name in ("m0.onnx", "m1.onnx", "m2.onnx", "sub/large.onnx"):
        written = single / os.path.basename(name)
        assert main(["optimize", str(models / name), str(written), "-O3", "-q"]) == 0
        assert (out / name).read_bytes() == written.read_bytes()
    data = "large.onnx.data"
    assert (out / "sub" / data).read_bytes() == (single / data).read_bytes()
    assert found["m0.onnx"].status == "done"
    assert (found["m0.onnx"].nodes_before, found["m0.onnx"].nodes_after) == (3, 1)
    assert found["m0.onnx"].nbytes == (out / "m0.onnx").stat().st_size
    assert found["broken.onnx"].status == "failed"
    assert found["broken.onnx"].exit_code == 1
    assert "is not an ONNX model" in found["broken.onnx"].reason
    wanted = ["m0.onnx", "m1.onnx", "m2.onnx", "sub/large.onnx", f"sub/{data}", NAME]
    assert files(out) == sorted(wanted)
    # The largest is first, and each has one line.
    assert next(iter(found)) == "large.onnx"
    assert sorted(line.target for line in read_manifest(str(out / NAME))) == sorted(
        result.target for result in found.values()
    )


def test_resume_does_what_is_missing_or_changed(models: Path, make: Make, tmp_path: Path) -> None:
    for number in range(4):
        make(f"m{number}", number=number)
    out = tmp_path / "out"
    first = batch(models, out)
    make("m1", number=9)  # another input
    (out / "m2.onnx").unlink()  # a result that is gone
    (out / "m3.onnx").write_bytes(b"spoiled")
    before = (out / "m0.onnx").stat().st_mtime_ns
    second = batch(models, out, resume=True)
    statuses = [second[f"m{number}.onnx"].status for number in range(4)]
    assert statuses == ["skipped", "done", "done", "done"]
    assert (out / "m0.onnx").stat().st_mtime_ns == before
    assert second["m2.onnx"].sha256_out == first["m2.onnx"].sha256_out
    assert second["m1.onnx"].sha256_out != first["m1.onnx"].sha256_out
    other = Command("optimize", ("-O1",))
    assert {r.status for r in batch(models, out, other, resume=True).values()} <= {"done", "cached"}


def test_equal_models_are_copied_over_results_of_the_batch(
    models: Path, make: Make, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        make(name)
    out = tmp_path / "out"
    batch(models, out, jobs=2)
    for options, settings in ((("-O1",), {"resume": True}), (("-O2", "--force"), {})):
        found = batch(models, out, Command("optimize", options), **settings)
        assert sorted(r.status for r in found.values()) == ["cached", "cached", "done"]
    # Not known to be a result of this batch: a run decides whether it may be replaced.
    found = batch(models, out, Command("optimize", ("-O1",)))
    assert {r.status for r in found.values()} == {"done"}


def test_equal_models_are_done_once(models: Path, make: Make, tmp_path: Path) -> None:
    for name in ("a", "b", "sub/c"):
        make(name)
    for name in ("y", "z"):
        (models / f"{name}.onnx").write_bytes(b"not a model")
    found = batch(models, tmp_path / "out")
    assert sorted(result.status for result in found.values()) == [
        *("cached", "cached", "done", "failed", "failed")
    ]
    assert len({(tmp_path / "out" / f"{name}.onnx").read_bytes() for name in ("a", "b")}) == 1
    assert "y.onnx" in found["y.onnx"].reason
    assert "z.onnx" in found["z.onnx"].reason


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_a_lost_process_is_one_line(
    models: Path, make: Make, trouble: tuple[str, ...], tmp_path: Path
) -> None:
    for name in ("crash", "memory", "raise", "fine"):
        make(name, graph=name)
    command = Command("optimize", trouble)
    bundles = tmp_path / "bundles"
    out = tmp_path / "out"
    limit = 600 << 20
    found = batch(models, out, command, jobs=2, reproducers=str(bundles), max_memory=limit)
    statuses = {name.partition(".")[0]: result.status for name, result in found.items()}
    assert statuses == {
        "crash": "crashed",
        "memory": "memory",
        "raise": "failed",
        "fine": "done",
    }
    assert "SIGSEGV" in found["crash.onnx"].reason
    assert "memory" in found["memory.onnx"].reason
    assert "ZeroDivisionError" in found["raise.onnx"].reason
    assert files(tmp_path / "out") == ["fine.onnx", NAME]
    bundle = json.loads((bundles / "crash.onnx" / "crash.json").read_text())
    assert bundle["status"] == "crashed"
    assert (bundles / "crash.onnx" / "0-crash.onnx").exists()


def test_a_job_that_hangs_is_one_line(
    models: Path, make: Make, trouble: tuple[str, ...], tmp_path: Path
) -> None:
    make("hang", graph="hang")
    (found,) = batch(models, tmp_path / "out", Command("optimize", trouble), timeout=2.0).values()
    assert (found.status, found.exit_code) == ("timeout", 1)
    assert "more than 2 s" in found.reason


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_jobs_that_do_not_fit_together_run_alone(
    models: Path, make: Make, trouble: tuple[str, ...], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        make(name, graph="large", number=ord(name))
    command = Command("optimize", trouble)
    found = batch(models, tmp_path / "out", command, jobs=2, max_memory=420 << 20)
    assert [result.status for result in found.values()] == ["done", "done"]
    assert all((result.peak or 0) < 420 << 20 for result in found.values())


def test_fail_fast_starts_no_more_models(models: Path, make: Make, tmp_path: Path) -> None:
    (models / "large.onnx").write_bytes(b"no model" * 1000)
    for number in range(3):
        make(f"m{number}", number=number)
    found = batch(models, tmp_path / "out", jobs=1, fail_fast=True)
    assert [result.status for result in found.values()] == ["failed", *["not run"] * 3]
    assert [line.status for line in read_manifest(str(tmp_path / "out" / NAME))] == ["failed"]


def test_no_other_model_is_replaced(models: Path, make: Make, tmp_path: Path) -> None:
    make("a")
    out = tmp_path / "out"
    out.mkdir()
    onnx.save(onnx.load(make("b", number=2)), out / "a.onnx")
    content = (out / "a.onnx").read_bytes()
    found = batch(models, out)
    assert found["a.onnx"].status == "failed"
    assert "not an earlier result" in found["a.onnx"].reason
    assert (out / "a.onnx").read_bytes() == content
    assert batch(models, out)["b.onnx"].status == "done"  # its own result


def test_a_model_in_the_way_of_one_fails_no_equal_one(
    models: Path, make: Make, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        make(name)
    out = tmp_path / "out"
    out.mkdir()
    onnx.save(onnx.load(make("c", number=2)), out / "a.onnx")
    (models / "c.onnx").unlink()
    found = batch(models, out)
    assert {name: each.status for name, each in found.items()} == {
        "a.onnx": "failed", "b.onnx": "done"
    }  # fmt: skip


def test_reports_have_the_paths_of_the_models(models: Path, make: Make, tmp_path: Path) -> None:
    make("a")
    command = Command("inspect")
    (result,) = batch(models, tmp_path / "out", command).values()
    assert result.target.endswith("a.onnx.json")
    report = json.loads(Path(result.target).read_text())
    assert report["file"] == str(models / "a.onnx")
    assert batch(models, tmp_path / "out", command, resume=True)["a.onnx"].status == "skipped"


def test_verify_compares_with_a_folder(models: Path, make: Make, tmp_path: Path) -> None:
    make("a")
    make("b", number=2)
    out = tmp_path / "out"
    batch(models, out)
    onnx.save(onnx.load(make("c", number=3)), out / "b.onnx")
    (models / "c.onnx").unlink()
    command = Command("verify", (), str(models))
    found = batch(out, tmp_path / "reports", command)
    assert (found["a.onnx"].status, found["a.onnx"].verified) == ("done", True)
    assert (found["b.onnx"].status, found["b.onnx"].exit_code) == ("failed", 3)
    assert json.loads((tmp_path / "reports" / "b.onnx.json").read_text())["ok"] is False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jobs": 0}, "--jobs takes a number from 1"),
        ({"timeout": 0.0}, "--timeout takes seconds above 0"),
        pytest.param(
            {"max_memory": 1 << 20},
            "too few; a process for a model needs at least",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux reports memory"),
        ),
    ],
)
def test_wrong_options_are_reported_before_any_work(
    models: Path, make: Make, tmp_path: Path, options: dict[str, object], words: str
) -> None:
    make("a")
    with pytest.raises(UsageError, match=words):
        batch(models, tmp_path / "out", O3, **options)
