"""Which existing file `tiered optimize` replaces: an earlier result of the model, nothing else."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import SMALL, Cli
from tiered.cli.source_mark import ROOT, SOURCE
from tiered.testing import parse


def marks(path: Path, key: str = SOURCE) -> list[str]:
    entries = onnx.load(path, load_external_data=False).metadata_props
    return [entry.value for entry in entries if entry.key == key]


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


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("source_mark")


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
    assert cli("optimize", small, second, "-O3", "--dim", "n=2").code == 0
    assert cli("optimize", first, second).code == 2
    assert cli("optimize", small, second).code == 0


def test_a_result_that_equals_the_model_loses_nothing(cli: Cli, small: Path) -> None:
    first, second = small.with_name("a.onnx"), small.with_name("b.onnx")
    for out in (first, second):
        assert cli("optimize", small, out).code == 0
    assert cli("optimize", first, second).code == 0
    assert first.read_bytes() == second.read_bytes()


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


PRODUCT = """(float[2,64] x) => (float[2,64] z) <float[64,64] w = {0}> {
    a = Relu(x)  b = Identity(a)  y = MatMul(b, w)  z = Identity(y) }"""


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """Return the file of a model that can be optimised, quantised and converted."""
    path = tmp_path / "a.onnx"
    model = parse(PRODUCT, opset=17)
    weight = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, path)
    return path


CHAINS = {
    "optimize, quantize": (("optimize", "a", "b"), ("quantize", "b", "c", "--dynamic")),
    "optimize, quantize by ranges": (("optimize", "a", "b"), ("quantize", "b", "c", "-q")),
    "convert, optimize": (("convert", "a", "b", "--opset=18"), ("optimize", "b", "c")),
    "optimize twice": (("optimize", "a", "b"), ("optimize", "b", "c"), ("optimize", "c", "d")),
    "three steps": (
        ("optimize", "a", "b", "-O1"),
        ("convert", "b", "c", "--opset=18"),
        ("convert", "c", "d", "--to=fp16", "--no-measure"),
        ("optimize", "d", "e", "-O3"),
    ),
    "gradient, extract": (
        ("gradient", "a", "b", "--of=z", "--wrt=x", "--seed=ones"),
        ("extract", "b", "c", "--to=z"),
        ("optimize", "c", "d"),
    ),
    "external data": (
        ("optimize", "a", "b", "--external-data=1"),
        ("optimize", "b", "c"),
        ("optimize", "c", "d", "--single-file", "-O3"),
    ),
    "annotated": (("optimize", "a", "b"), ("optimize", "b", "c", "--annotate")),
    "merge": (
        ("extract", "a", "b", "--to=b"),
        ("extract", "a", "c", "--from=b"),
        ("merge", "b", "c", "d"),
        ("optimize", "d", "e"),
    ),
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_a_chain_of_commands_can_be_repeated(
    cli: Cli, product: Path, chain: tuple[tuple[str, ...], ...]
) -> None:
    def named(token: str) -> str | Path:
        return product.with_name(f"{token}.onnx") if len(token) == 1 else token

    contents = []
    for _ in range(3):
        for step in chain:
            ended = cli(*map(named, step))
            assert ended.code == 0, (step, ended.err)
        contents.append(onnx.load(named(chain[-1][-1 if len(chain[-1][-1]) == 1 else 2])))
    assert contents[0] == contents[1] == contents[2]


def test_the_mark_names_the_source_and_the_root(cli: Cli, product: Path) -> None:
    b, c, d = (product.with_name(f"{name}.onnx") for name in "bcd")
    assert cli("optimize", product, b).code == 0
    assert cli("convert", b, c, "--opset=18").code == 0
    assert cli("convert", c, d, "--opset=19").code == 0
    assert marks(b, ROOT) == []
    assert marks(c, ROOT) == marks(d, ROOT) == marks(b)
    assert len({*marks(b), *marks(c), *marks(d)}) == 3


REFUSED = {
    "a higher opset": ("convert", "--opset=18"),
    "a higher opset by a pass": ("optimize", "--passes=convert_opset{to=18}"),
    "int8 weights": ("quantize", "--weights=int8"),
    "dynamic": ("quantize", "--dynamic"),
    "ranges": ("quantize", "-q"),
    "float16": ("convert", "--to=fp16", "--no-measure"),
}


@pytest.mark.parametrize("command", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("is_chain", [False, True])
def test_no_opset_and_no_precision_is_lost(
    cli: Cli, product: Path, command: tuple[str, str], is_chain: bool
) -> None:
    middle, out = product.with_name("b.onnx"), product.with_name("c.onnx")
    assert cli("optimize", product, middle).code == 0
    assert cli(command[0], middle if is_chain else product, out, command[1]).code == 0
    before = out.read_bytes()
    for source in (product, middle):
        ended = cli("optimize", source, out)
        assert ended.code == 2
        assert "use --force to replace it" in ended.err
        assert out.read_bytes() == before
    assert cli("optimize", product, out, "--force").code == 0


def test_what_the_model_has_itself_is_not_lost(cli: Cli, product: Path) -> None:
    out = product.with_name("out.onnx")
    assert cli("optimize", product, out).code == 0
    assert cli("convert", product, out, "--opset=13").code == 0


def test_a_batch_loses_nothing(cli: Cli, product: Path) -> None:
    folder = product.with_name("out")
    folder.mkdir()
    out = folder / "a.onnx"
    assert cli("convert", product, out, "--opset=18").code == 0
    before = out.read_bytes()
    assert cli("batch", product, "--out-dir", folder).code == 1
    assert out.read_bytes() == before
