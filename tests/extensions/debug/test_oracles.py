"""Oracles: by the outputs of a model, with its promises and samples; and by a command."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import neg_to_abs
from tiered import Model, Pass, PassInfo, UsageError, get_pass
from tiered.extensions.debug.oracles import CommandOracle, OutputOracle, SameEnd, ended
from tiered.runtime import Numerics
from tiered.support.errors import RuntimeFailure
from tiered.targets import Verification
from tiered.testing import parse
from tiered.verify.baseline import RunnableModel

RIGHT = "(float[4] x) => (float[4] y) { a = Neg(x)  y = Abs(a) }"
FEEDS = {"x": np.array([1, -2, 3, 0.5], np.float32)}


def oracle(text: str = RIGHT, **more: Any) -> OutputOracle:
    return OutputOracle(parse(text), **{"inputs": [FEEDS], **more})


def infos(*passes: Pass) -> Sequence[PassInfo]:
    return [each.info for each in passes]


def failure(of: OutputOracle, text: str, *passes: Pass) -> str:
    return of(Model.from_proto(parse(text)), infos(*passes))


def test_the_same_outputs_are_no_failure_and_others_are() -> None:
    of = oracle()
    assert failure(of, "(float[4] x) => (float[4] y) { y = Abs(x) }") == ""
    said = failure(of, "(float[4] x) => (float[4] y) { y = Neg(x) }")
    assert said.endswith("(promised: exact)")
    assert said.startswith("y: 3 of 4 elements differ")


def test_the_loosest_promise_of_the_passes_holds() -> None:
    text = """(float[4] x) => (float[4] y) <float k = {1.0000001}> { a = Abs(x)  y = Mul(a, k) }"""
    assert failure(oracle(), text, neg_to_abs) != ""
    assert failure(oracle(), text, neg_to_abs, get_pass("fuse_consecutive_scale")) == ""


def test_a_numeric_class_is_instead_of_the_promises() -> None:
    text = """(float[4] x) => (float[4] y) <float k = {1.0000001}> { a = Abs(x)  y = Mul(a, k) }"""
    assert failure(oracle(numerics=Numerics.REASSOCIATING), text) == ""
    loose = get_pass("fuse_consecutive_scale")
    assert failure(oracle(numerics=Numerics.EXACT), text, loose) != ""


def test_a_target_may_be_content_with_less_unless_passes_are_exact() -> None:
    text = """(float[4] x) => (float[4] y) <float k = {1.01}> { a = Abs(x)  y = Mul(a, k) }"""
    limits, loose = Verification(rtol=0.1, atol=0.1), get_pass("fuse_consecutive_scale")
    assert failure(oracle(), text, loose) != ""
    assert failure(oracle(limits=limits), text, loose) == ""
    assert failure(oracle(limits=limits), text, neg_to_abs) != ""


def test_a_model_that_does_not_run_is_a_failure() -> None:
    said = failure(oracle(), "(float[4] x) => (float[4] y) { y = com.acme.Own(x) }")
    assert "com.acme" in said
    wrong = "(float[4] x) => (float[4] y) <float[3] w = {1,2,3}> { y = Add(x, w) }"
    assert failure(oracle(), wrong) != ""


def test_outputs_that_a_pass_may_change_are_left_out() -> None:
    two = "(float[4] x) => (float[4] y, float[4] z) { a = Neg(x)  y = Abs(a)  z = Neg(a) }"
    one = "(float[4] x) => (float[4] y) { y = Abs(x) }"
    assert failure(oracle(two), one, get_pass("gradient")) == ""
    assert failure(oracle(two), one, neg_to_abs) != ""


def test_the_first_inputs_that_show_a_difference_are_kept() -> None:
    same, other = {"x": np.full(4, -1, np.float32)}, FEEDS
    of = oracle(inputs=[same, other])
    assert len(of.samples) == 2
    assert failure(of, "(float[4] x) => (float[4] y) { y = Neg(x) }") != ""
    assert of.runs == 2
    assert len(of.samples) == 1
    np.testing.assert_array_equal(of.sample.feeds["x"], FEEDS["x"])
    assert failure(of, RIGHT) == ""
    assert of.runs == 3


def test_varied_inputs_say_nothing_of_a_lossy_pass() -> None:
    of = oracle(inputs=[])
    assert [sample.is_varied for sample in of.samples] == [False, True]
    runs = of.runs
    assert failure(of, RIGHT, get_pass("float_to_half")) == ""
    assert of.runs == runs + 1
    assert failure(of, RIGHT) == ""
    assert of.runs == runs + 3


def test_a_model_of_random_outputs_has_no_oracle() -> None:
    with pytest.raises(UsageError, match="gives other outputs each time it runs"):
        oracle("(float[4] x) => (float[4] y) { y = RandomNormalLike(x) }")
    both = "(float[4] x) => (float[4] y, float[4] z) { y = RandomNormalLike(x)  z = Neg(x) }"
    assert failure(oracle(both), both) == ""


def test_an_original_that_does_not_run_is_an_error() -> None:
    with pytest.raises(RuntimeFailure):
        oracle("(float[4] x) => (float[4] y) { y = com.acme.Own(x) }")


def test_the_name_has_what_decides() -> None:
    assert oracle(inputs=[]).name == "outputs as promised, seed 0"
    given = oracle(numerics=Numerics.EXACT, seed=3)
    assert given.name.startswith("outputs exact, seed 3, inputs [")


def test_a_rewrite_that_changed_the_outputs_has_no_excuse() -> None:
    of = oracle()
    one, other = (
        RunnableModel.of(Model.from_proto(parse(text)))
        for text in (RIGHT, "(float[4] x) => (float[4] y) { y = Neg(x) }")
    )
    assert of.excuse(one, one, neg_to_abs.info) == ""
    assert of.excuse(one, other, neg_to_abs.info) == ""
    assert failure(of, RIGHT) == ""


# --- commands -------------------------------------------------------------------------------------


@pytest.fixture
def script(tmp_path: Path) -> str:
    """Return a command that ends with the number of Neg and Abs in a model."""
    path = tmp_path / "count.py"
    path.write_text(
        "import sys\ntext = open(sys.argv[-1], 'rb').read()\n"
        "sys.exit(text.count(b'Neg') + text.count(b'Abs'))\n"
    )
    return f"{sys.executable} {path}"


def test_a_command_gets_the_model_and_0_is_right(script: str) -> None:
    of = CommandOracle(script)
    assert of(Model.from_proto(parse(RIGHT))) == f"`{script}` ended with 2"
    assert of.runs == 1
    assert of.name == f"command {script}"


@pytest.mark.parametrize(
    ("tail", "code"), [("", 1), ("{}", 1), ("--model={} other", 0), ("x {}", 2)]
)
def test_the_file_is_in_the_place_of_braces_or_at_the_end(tail: str, code: int) -> None:
    # The exit code is the number of the word that is the file, from 1; 0 for none.
    line = "import sys; w = sys.argv[1:]; sys.exit(w.index('F') + 1 if 'F' in w else 0)"
    assert ended(f'{sys.executable} -c "{line}" {tail}', "F") == code


def test_a_command_that_is_none_is_an_error() -> None:
    with pytest.raises(UsageError, match="cannot run the check 'no_such_command_x'"):
        ended("no_such_command_x", "m.onnx")
    with pytest.raises(UsageError, match=r"cannot read the check .*No closing quotation"):
        ended("check 'a", "m.onnx")


def test_a_command_may_take_too_long() -> None:
    line = f'{sys.executable} -c "import time; time.sleep(60)"'
    assert ended(line, "m.onnx", 0.05) == "no end within 0.05 s"


def test_the_same_end_is_that_of_the_first_model(script: str) -> None:
    same = SameEnd(script)
    assert same(parse(RIGHT))
    assert same.code == 2
    assert not same(parse("(float[4] x) => (float[4] y) { y = Neg(x) }"))
    assert same(parse(RIGHT))
    empty = onnx.ModelProto()
    empty.CopyFrom(parse(RIGHT))
    del empty.graph.node[:]
    assert not SameEnd(script)(empty)
