"""`tiered tune`: the file, the text, JSON, the page, a command as the judge, Ctrl-C, errors."""

import io
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from rich.console import Console

from tests.cli.conftest import Cli
from tests.recorded import assert_values
from tiered.cli.commands.tune import TuneOptions, _print
from tiered.extensions.measurement.medians import MedianInterval
from tiered.extensions.tuning.found import Tried
from tiered.extensions.tuning.judges import SizeJudge
from tiered.extensions.tuning.model_forms import Choice, Made, ModelForm
from tiered.extensions.tuning.race import Gain
from tiered.extensions.tuning.tuning_result import Tuned
from tiered.testing import parse

NET = """(float[2,8] x) => (float[2,8] y) <float w, float b> {
    i = Identity(x)  m = MatMul(i, w)  a = Add(m, b)  r = Relu(a)  y = Relu(r) }"""
BY_SIZE = "import os, sys; print('bytes', os.path.getsize(sys.argv[1]))"


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    model = parse(NET)
    del model.graph.initializer[:]
    for name, dims in (("w", (8, 8)), ("b", (8,))):
        model.graph.initializer.append(numpy_helper.from_array(np.ones(dims, np.float32), name))
    onnx.save(model, "net.onnx")
    return "net.onnx"


def shown(tuned: Tuned, *, verbose: bool = False) -> None:
    """Print a result as the command does."""
    with io.StringIO() as file:
        console = Console(file=file, width=200, markup=False, highlight=False)
        _print(console, tuned, "m.onnx", "out.onnx", TuneOptions(verbose=verbose))
        print(file.getvalue())


def test_all_that_is_printed_of_made_results() -> None:
    gain = Gain(MedianInterval(0.9, 0.95, 0.97, 0.99), 10, "better")
    tried = (
        Tried("start", "-O2", gain, False, "slower"),
        Tried("decision", "without a", gain, True, "better"),
        Tried("decision", "without b", None, False, "no time was left"),
    )
    plain = Tuned(
        ModelForm(3), ModelForm(2), (), (), None, None, "", "", 1, 2048, 0, 0, True, ()
    )  # fmt: skip
    whole = replace(
        plain,
        form=ModelForm(3, "npu", disabled=("a",)),
        tried=tried,
        choices=(Choice("without a"),),
        beside_reference=gain,
        beside_original=replace(gain, verdict="no difference"),
        pipeline="b,c{x=1}",
        nodes=1234,
        remarks=("it was late",),
    )
    names = {
        "shown": shown,
        "plain": plain,
        "whole": whole,
        "file": replace(whole, form=ModelForm(None, file="peer.onnx")),
        "peer": replace(whole, form=ModelForm(2, file="peer.onnx"), tried=tried[:2]),
        "original": replace(plain, form=ModelForm(None), beside_original=gain),
    }
    assert_values(__file__, names)


def test_the_best_form_is_written_and_explained(cli: Cli, net: str) -> None:
    ended = cli("tune", net, "out.onnx", "--objective", "size", "--backend", "portable", "-v")
    assert (ended.code, ended.err) == (0, "")
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0].startswith("net.onnx -> out.onnx: -O")
    assert any("of the original" in line and "better" in line for line in lines)
    assert "What was looked at" in lines
    again = next(line for line in lines if line.startswith("again: tiered optimize net.onnx"))
    wanted = Path("out.onnx").read_bytes()
    assert cli(*shlex.split(again)[2:]).code == 0
    assert Path("out.onnx").read_bytes() == wanted
    assert any(line.startswith("--passes ") for line in lines)
    assert not Path("out.onnx.tune.json").exists()


def test_the_pipeline_that_is_printed_makes_the_same_bytes(cli: Cli, net: str) -> None:
    ended = cli("tune", net, "out.onnx", "--objective", "size", "--backend", "portable", "--json",
                "--save-backend", "tuned.toml")  # fmt: skip
    record = json.loads(ended.out)
    wanted = Path("out.onnx").read_bytes()
    assert (record["output"], record["interrupted"]) == ("out.onnx", False)
    assert cli("optimize", net, "a.onnx", "--passes", record["pipeline"]).code == 0
    assert Path("a.onnx").read_bytes() == wanted
    level = record["options"][0]
    assert cli("optimize", net, "b.onnx", level, "--backend", "tuned.toml").code == 0
    assert Path("b.onnx").read_bytes() == wanted
    assert Path("tuned.toml").read_text() == record["backend"]


def test_a_command_is_the_judge(cli: Cli, net: str) -> None:
    command = shlex.join([sys.executable, "-S", "-c", BY_SIZE, "{model}"])
    ended = cli("tune", net, "out.onnx", "--measure", command, "--html", "t.html")
    assert (ended.code, ended.err) == (0, "")
    assert Path("out.onnx").stat().st_size < Path(net).stat().st_size + 100
    page = Path("t.html").read_text()
    assert "Ratios of costs" in page
    assert "What was looked at" in page


def test_a_candidate_is_written_as_a_result_of_the_model(cli: Cli, net: str) -> None:
    assert cli("optimize", net, "peer.onnx", "-O2").code == 0
    peer = onnx.load("peer.onnx")
    del peer.metadata_props[:]
    onnx.save(peer, "peer.onnx")
    plain = onnx.load(net)
    plain.doc_string = "long" * 200  # which every form of the model keeps
    onnx.save(plain, net)
    options = ("--objective", "size", "--backend", "portable", "--candidates", "peer.onnx")
    ended = cli("tune", net, "out.onnx", *options)
    assert (ended.code, ended.err) == (0, "")
    again = next(line for line in ended.out.splitlines() if "again: " in line).split("again: ")[1]
    wanted = Path("out.onnx").read_bytes()
    assert "peer.onnx" in again
    assert cli(*shlex.split(again)[1:]).code == 0
    assert Path("out.onnx").read_bytes() == wanted
    assert cli("tune", net, "out.onnx", *options).code == 0  # an earlier result may be replaced


def test_a_file_as_it_is_has_no_backend(
    cli: Cli, net: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The more nodes are left, the better.
    monkeypatch.setattr(
        SizeJudge, "costs", lambda self, forms, number, apart: [-form.nodes for form in forms]
    )
    ended = cli("tune", net, "out.onnx", "--objective", "size", "--save-backend", "t.toml")
    assert (ended.code, Path("t.toml").exists()) == (4, False)
    assert "'t.toml' is not written: the result is as it is, which no backend makes" in ended.err
    assert len(onnx.load("out.onnx").graph.node) == 5


def test_an_interruption_writes_the_best_so_far(
    cli: Cli, net: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    plain = SizeJudge.costs

    def costs(self: SizeJudge, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
        calls.append(number)
        if len(calls) == limit:
            raise KeyboardInterrupt
        return plain(self, forms, number, apart=apart)

    monkeypatch.setattr(SizeJudge, "costs", costs)
    limit = 1
    options = ("--objective", "size", "--backend", "portable")
    ended = cli("tune", net, "out.onnx", *options)
    assert (ended.code, ended.out, Path("out.onnx").exists()) == (130, "", False)
    calls.clear()
    limit = 3
    ended = cli("tune", net, "out.onnx", *options)
    assert ended.code == 130
    assert "interrupted: the result is the best that was proved until then" in ended.out
    onnx.checker.check_model(onnx.load("out.onnx"))
    assert Path("out.onnx.tune.json").exists()
    limit = 0
    assert cli("tune", net, "out.onnx", "--resume", *options).code == 0
    assert not Path("out.onnx.tune.json").exists()


def test_a_model_that_is_no_earlier_result_is_kept(cli: Cli, net: str) -> None:
    onnx.save(parse("(float[2] x) => (float[2] y) { y = Relu(x) }"), "other.onnx")
    before = Path("other.onnx").read_bytes()
    ended = cli("tune", net, "other.onnx", "--objective", "size")
    assert ended.code == 2
    assert "use --force to replace it" in ended.err
    assert Path("other.onnx").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--objective", "speed"), 2, "no objective 'speed'"),
        (("--budget", "some"), 2, "--budget 'some': expected exact"),
        (("--candidates", "none.onnx"), 2, "--candidates 'none.onnx': no such file"),
        (("--measure", "npu-bench"), 2, "lacks {model}"),
        (("--measure", "false {model}"), 1, "ended with exit code 1"),
        (("--resume",), 1, "--resume: no file 'out.onnx.tune.json'"),
        (("--save-backend", "tuned.onnx"), 2, "--save-backend ends in .toml"),
        (("--save-backend", "none/t.toml"), 1, "cannot write 'none/t.toml': no directory 'none'"),
        (("--html", "t.onnx"), 2, "its file ends in .html"),
        (("--backend", "none"), 2, "none"),
        (("--minutes", "-1"), 2, "minutes are a number above 0"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(
    cli: Cli, net: str, options: tuple[str, ...], code: int, said: str
) -> None:
    ended = cli("tune", net, "out.onnx", *options)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert not Path("out.onnx").exists()
