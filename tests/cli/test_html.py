"""The pages that `--html` writes."""

from pathlib import Path

import onnx
import pytest

from tests.cli.commands.test_layout import TEXT as IMAGES
from tests.cli.conftest import Cli
from tests.cli.test_optimize import add_to_itself, registered
from tests.support.pages.reader import read
from tiered.testing import parse


def test_optimize_writes_a_page(cli: Cli, small: Path, tmp_path: Path) -> None:
    ended = cli("optimize", small, "--dry-run", "--html", tmp_path / "run.html", "--verify")
    assert (ended.code, ended.err) == (0, "")
    page = read((tmp_path / "run.html").read_text(encoding="utf-8"))
    assert "tiered optimize small.onnx" in page.text
    assert "Verification" in page.text
    assert page.data["total"] == 3
    assert str(tmp_path) not in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_the_summary_says_how_the_page_was_made(cli: Cli, small: Path, tmp_path: Path) -> None:
    run = ("optimize", small, tmp_path / "out.onnx", "--html", tmp_path / "run.html")
    cli(*run, "--edit", "drop inline", "-q")
    page = read((tmp_path / "run.html").read_text(encoding="utf-8"))
    assert "tiered optimize small.onnx out.onnx --edit 'drop inline' -q" in page.text
    assert "written to out.onnx" in " ".join(page.text.split())
    assert "edits of the pipeline drop inline" in " ".join(page.text.split())


def test_convert_writes_a_page_of_its_run(cli: Cli, small: Path, tmp_path: Path) -> None:
    out, html = tmp_path / "half.onnx", tmp_path / "run.html"
    ended = cli("convert", small, out, "--to", "fp16", "--html", html)
    assert ended.code == 0, ended.err
    page = read(html.read_text(encoding="utf-8"))
    assert "tiered convert small.onnx" in page.text
    assert "float_to_half" in page.text


@pytest.mark.parametrize(
    "command",
    [
        ("inspect",),
        ("check", "--backend", "portable"),
        ("quantize",),
        ("verify", "--against", "elsewhere"),
    ],
)
def test_a_page_is_for_one_model_and_not_a_batch(
    cli: Cli, small: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    name, *options = command
    where = ("--out-dir", tmp_path / "out", "--html", tmp_path / "page.html")
    ended = cli("batch", name, small, *options, *where)
    assert (ended.code, "--html is for one model, not a batch" in ended.err) == (2, True), ended.err


def test_without_times_the_page_is_the_same_each_time(
    cli: Cli, small: Path, tmp_path: Path
) -> None:
    for name in ("a.html", "b.html"):
        cli("optimize", small, "--dry-run", "--html", tmp_path / name, "--html-without-times")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_run_that_fails_has_a_page_too(cli: Cli, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.html"
    run = ("optimize", small, tmp_path / "o.onnx", "--verify", "--html", out)
    with registered(add_to_itself):
        ended = cli(*run, "--passes", "add_to_itself")
    assert ended.code == 3
    assert "The run ended with an error: " in read(out.read_text(encoding="utf-8")).text


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--html", "model.onnx"], 2, "its file ends in .html"),
        (["--html", "absent/run.html"], 1, "no directory 'absent'"),
        (["--html-without-times"], 2, "--html-without-times has no effect: it needs --html FILE"),
    ],
)
def test_wrong_options_are_errors(
    cli: Cli, small: Path, options: list[str], code: int, said: str
) -> None:
    ended = cli("optimize", small, "--dry-run", *options)
    assert ended.code == code
    assert said in ended.err


def test_one_page_is_not_for_several_models(cli: Cli, small: Path, tmp_path: Path) -> None:
    ended = cli("optimize", small, small, "--out-dir", tmp_path / "o", "--html", "a.html")
    assert ended.code == 2
    assert "--html is for one model, not a batch" in ended.err


# --- verify ---------------------------------------------------------------------------------------


def _chain(path: Path, slope: float) -> Path:
    onnx.save(
        parse(
            "(float[4] x) => (float[4] y) { a = Exp(x)  "
            f"b = LeakyRelu<alpha={slope}>(x)  c = Add(a, b)  y = Tanh(c) }}"
        ),
        path,
    )
    return path


def test_verify_marks_the_first_layer_that_differs(cli: Cli, tmp_path: Path) -> None:
    one, other = _chain(tmp_path / "a.onnx", 0.1), _chain(tmp_path / "b.onnx", 0.4)
    ended = cli("verify", one, other, "--html", tmp_path / "v.html", "--every-layer")
    assert ended.code == 3
    html = (tmp_path / "v.html").read_text(encoding="utf-8")
    page = read(html)
    assert "the models differ" in page.text
    assert "first layer that differs LeakyRelu b" in page.text
    assert html.count('class="point first"') == 1
    assert html.count('class="point wrong"') == 2
    assert str(tmp_path) not in html


def test_verify_of_equal_models_marks_nothing(cli: Cli, tmp_path: Path) -> None:
    one = _chain(tmp_path / "a.onnx", 0.1)
    assert cli("verify", one, one, "--html", tmp_path / "v.html").code == 0
    page = read((tmp_path / "v.html").read_text(encoding="utf-8"))
    assert "the models agree" in page.text
    assert "no layer differs" in (tmp_path / "v.html").read_text(encoding="utf-8")


# --- layout ---------------------------------------------------------------------------------------


def test_layout_shows_what_blocks_each_transpose(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "images.onnx"
    onnx.save(parse(IMAGES), path)
    ended = cli("layout", path, "--html", tmp_path / "l.html", "--dim", "n=2")
    assert (ended.code, ended.err) == (0, "")
    html = (tmp_path / "l.html").read_text(encoding="utf-8")
    page = read(html)
    assert "Transposes that stay" in page.text
    assert "graph input 'x', reached through Relu 'r'" in page.text
    assert "256 B" in page.text
    assert str(tmp_path) not in html


@pytest.mark.parametrize("command", [["verify", "a.onnx", "b.onnx"], ["layout", "a.onnx"]])
def test_the_page_of_a_comparison_or_layout_needs_its_suffix(cli: Cli, command: list[str]) -> None:
    ended = cli(*command, "--html", "page.txt")
    assert ended.code == 2
    assert "its file ends in .html" in ended.err


# --- reports --------------------------------------------------------------------------------------

WEIGHT = "float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}"
REPORTS = {
    "memory": ((), ("tensors at the peak", "Alive at the peak", "Bytes alive at each node")),
    "inspect": ((), ("Interface", "float[2,4]", "2 nodes, 2 operators")),
    "check": (("--backend", "onnxruntime_cpu"), ("The model as it is", "MatMul")),
    "partition": (("--backend", "onnxruntime_cpu"), ("Regions", "Picture of the regions")),
    "quantize": (("--dry-run",), ("layers", "Signal to noise of each product")),
}


@pytest.mark.parametrize("command", REPORTS)
def test_a_report_is_a_page_with_what_is_printed(cli: Cli, tmp_path: Path, command: str) -> None:
    options, said = REPORTS[command]
    model, out = tmp_path / "m<b>.onnx", tmp_path / "report.html"
    onnx.save(
        parse(f"(float[2,4] x) => (float[2,4] y) <{WEIGHT}> {{ a = MatMul(x, w)  y = Relu(a) }}"),
        model,
    )
    ended = cli(command, model, *options, "--html", out)
    assert ended.code == 0, ended.err
    text = out.read_text(encoding="utf-8")
    page = read(text)
    assert f"tiered {command} m<b>.onnx" in page.text
    for part in said:
        assert part in page.text
    assert str(tmp_path) not in text
    assert "m<b>" not in text


@pytest.mark.parametrize("command", REPORTS)
def test_the_file_of_a_report_is_checked_first(cli: Cli, small: Path, command: str) -> None:
    ended = cli(command, small, *REPORTS[command][0], "--html", "report.onnx")
    assert ended.code == 2
    assert "its file ends in .html" in ended.err
