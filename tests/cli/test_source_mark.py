"""Which existing file `tiered optimize` replaces: an earlier result of the model, nothing else."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import SMALL, Cli
from tiered.cli.source_mark import KEY
from tiered.testing import parse


def marks(path: Path) -> list[str]:
    entries = onnx.load(path, load_external_data=False).metadata_props
    return [entry.value for entry in entries if entry.key == KEY]


def weighted(path: Path, last: float, *, external: bool = False, count: int = 2) -> Path:
    """Write a model whose weight ends in a number."""
    model = parse(f"(float[{count}] x) => (float[{count}] y) <float w = {{0}}> {{ y = Add(x, w) }}")
    weight = np.zeros(count, np.float32)
    weight[-1] = last
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(
        model,
        path,
        save_as_external_data=external,
        location=f"{path.stem}.bin",
        size_threshold=0,
    )
    return path


def test_a_folder_of_two_models_is_not_an_input_and_an_output(cli: Cli, tmp_path: Path) -> None:
    first, second = weighted(tmp_path / "a.onnx", 1), weighted(tmp_path / "b.onnx", 2)
    before = second.read_bytes()
    ended = cli("optimize", *sorted(tmp_path.glob("*.onnx")), "-O3")
    assert (ended.code, ended.out) == (2, "")
    assert f"{str(second)!r} is an ONNX model and not an earlier result of" in ended.err
    assert "--force" in ended.err
    assert "--out-dir DIR" in ended.err
    assert second.read_bytes() == before
    assert cli("optimize", first, second, "--dry-run").code == 0
    assert cli("optimize", first, second, "--force").code == 0
    assert second.read_bytes() != before


def test_force_does_not_replace_the_model_that_is_read(cli: Cli, small: Path) -> None:
    assert cli("optimize", small, small, "--force").code == 2


@pytest.mark.parametrize("external", [False, True])
def test_an_earlier_result_is_replaced_whatever_the_options(
    cli: Cli, tmp_path: Path, external: bool
) -> None:
    source = weighted(tmp_path / "a.onnx", 1, external=external)
    out = tmp_path / "out.onnx"
    for options in ([], ["-O3"], ["--external-data=1"], ["--annotate"], []):
        assert cli("optimize", source, out, *options).code == 0
    assert len(marks(out)) == 1
    renamed = source.rename(tmp_path / "renamed.onnx")
    assert cli("optimize", renamed, out).code == 0


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("count", [2, 5_000_000])
def test_a_result_of_another_model_is_not_replaced(
    cli: Cli, tmp_path: Path, external: bool, count: int
) -> None:
    out = tmp_path / "out.onnx"
    first = weighted(tmp_path / "a.onnx", 1, external=external, count=count)
    assert cli("optimize", first, out).code == 0
    second = weighted(tmp_path / "a.onnx", 2, external=external, count=count)
    assert cli("optimize", second, out).code == 2


def test_results_of_one_model_do_not_replace_each_other(cli: Cli, small: Path) -> None:
    first, second = small.with_name("a.onnx"), small.with_name("b.onnx")
    assert cli("optimize", small, first, "-O0").code == 0
    assert cli("optimize", small, second, "-O3").code == 0
    assert cli("optimize", first, second).code == 2
    assert cli("optimize", small, second).code == 0


def test_a_second_run_changes_no_byte(cli: Cli, small: Path) -> None:
    once, twice = small.with_name("once.onnx"), small.with_name("twice.onnx")
    assert cli("optimize", small, once).code == 0
    assert cli("optimize", once, twice).code == 0
    assert once.read_bytes() == twice.read_bytes()
    assert len(marks(once)) == 1


def test_what_is_no_model_is_replaced(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    for content in (b"", b"older", b"\x08\x07"):
        out.write_bytes(content)
        assert cli("optimize", small, out).code == 0


def test_a_model_that_does_not_check_is_a_model(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    model = parse(SMALL)
    model.graph.node[0].input[0] = "nowhere"
    out.write_bytes(model.SerializeToString())
    assert cli("optimize", small, out).code == 2
