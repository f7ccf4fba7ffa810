import json
import signal
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.extensions.debug.wrong_passes import WRONG
from tests.small import registered
from tiered import (
    Graph,
    Model,
    Pass,
    PassContext,
    Value,
    function_pass,
    module_pass,
    op,
    rewrite,
    var,
)
from tiered.extensions.debug import Bundle, Failure, bisect, load_bundle, replay, write_reproducer
from tiered.extensions.debug.bundle import Replay, replayed_error, symptom_of
from tiered.support.errors import ModelError, PassNotFoundError
from tiered.testing import parse

SWAP = next(case for case in WRONG if case.name == "swap_operands_of_sub")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "bundle"
    blame = write_reproducer(parse(SWAP.model), made, passes=[SWAP.pass_], opt_level=3)
    assert blame is not None
    return made


def test_a_bundle_holds_all_that_it_takes(folder: Path) -> None:
    files = {path.name for path in folder.iterdir()}
    assert files == {"before.onnx", "after.onnx", "inputs.npz", "pipeline.txt", "failure.json"}
    said = json.loads((folder / "failure.json").read_text())
    assert said["command"] == f"tiered replay {folder}"
    assert said["settings"] == {"opt_level": 3}
    assert {"tiered", "onnx", "onnxruntime", "numpy"} <= set(said["versions"])
    assert (folder / "pipeline.txt").read_text() == "swap_operands_of_sub\n"


def test_an_unknown_pass_is_replayed_from_its_recorded_result(folder: Path) -> None:
    found = replay(folder)
    assert found.fails
    assert not found.ran_pass


def test_a_pass_that_is_known_runs_again(folder: Path) -> None:
    with registered(SWAP.pass_):
        found = replay(folder)
    assert found.fails
    assert found.ran_pass


def test_a_pass_that_was_mended_does_not_fail_any_more(folder: Path) -> None:
    @rewrite(op.Sub(var.x, var.x), opt_level=1, name="swap_operands_of_sub")
    def mended(graph: Graph, x: Value) -> Value:
        return x

    found = replay(folder, mended)
    assert not found.fails
    assert found.symptom == "the pass does not fail any more"


def test_nothing_is_written_where_nothing_is_wrong(tmp_path: Path) -> None:
    assert write_reproducer(parse(SWAP.model), tmp_path / "none", opt_level=2) is None
    assert not (tmp_path / "none").exists()


def test_an_invalid_bundle_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no bundle"):
        load_bundle(tmp_path)
    (tmp_path / "failure.json").write_text('{"format": 9}')
    with pytest.raises(ModelError, match="another format"):
        load_bundle(tmp_path)


def test_a_pass_that_raised_and_is_not_known_cannot_be_replayed(tmp_path: Path) -> None:
    case = next(case for case in WRONG if case.kind == "error")
    write_reproducer(parse(case.model), tmp_path / "raised", passes=[case.pass_])
    with pytest.raises(PassNotFoundError, match=case.pass_.name):
        replay(tmp_path / "raised")


def test_inputs_of_every_dtype_come_back(tmp_path: Path) -> None:
    failure = Failure("outputs", "p", "", "", "exact", 1, "", "", (), ())
    feeds = {
        "a": np.array([1, 2], ml_dtypes.bfloat16),
        "b": np.array([1, 2], ml_dtypes.float8_e4m3fn),
        "c": np.array(["x", "yy"], object),
        "d": np.array([[1]], np.int64),
    }
    Bundle(failure, parse(SWAP.model), None, feeds).save(tmp_path / "b")
    found = load_bundle(tmp_path / "b").feeds
    for name, array in feeds.items():
        assert found[name].dtype == array.dtype
        assert found[name].tolist() == array.tolist()


CHAIN = "(float[2] x) => (float[2] y) {{ a0 = Neg(x) {} y = Relu(a40) }}".format(
    " ".join(f"a{at + 1} = {'Relu' if at % 3 == 0 else 'Abs'}(a{at})" for at in range(40))
)


@function_pass(opt_level=1)
def rewrite_then_raise(graph: Graph, ctx: PassContext) -> None:
    """Rewrite, and raise over what that left."""
    for node in graph.nodes_of("Abs"):
        with graph.rewrite("Abs(x)  =>  Abs(Identity(x))", node):
            graph.replace(node, (graph.op.Abs(graph.op.Identity(node.input(0))),))
    if graph.nodes_of("Identity"):
        raise ValueError("an Identity")


@rewrite(op.Relu(var.x), opt_level=1)
def loop(graph: Graph, x: Value) -> Value:
    """Never come to an end."""
    return graph.op.Relu(graph.op.Identity(x))


@module_pass(opt_level=1)
def raise_on_many(model: Model, ctx: PassContext) -> None:
    """Raise where there are more than three nodes."""
    if len(model.main) > 3:
        raise ValueError("too many")


@pytest.mark.parametrize(
    ("pass_", "said", "most"),
    [
        (rewrite_then_raise, "ValueError: an Identity", 3),
        (loop, "loop does not terminate", 3),
        (raise_on_many, "ValueError: too many", 4),
    ],
)
def test_a_pass_that_raises_or_loops_is_shown_on_a_small_part(
    pass_: Pass, said: str, most: int, tmp_path: Path
) -> None:
    blame = write_reproducer(parse(CHAIN), tmp_path, passes=["eliminate_identity", pass_])
    assert blame is not None
    assert (blame.pass_name, blame.kind) == (pass_.name, "error")
    bundle = load_bundle(tmp_path)
    assert bundle.failure.nodes[0] <= most
    found = replay(bundle, pass_)
    assert found.fails
    assert said in found.symptom


@module_pass(opt_level=1)
def wait_for_ever(model: Model, ctx: PassContext) -> None:
    """Edit until there is a Relu in vain."""
    while model.main.nodes_of("Relu"):
        model.main.rename_node(model.main.nodes[0], "again")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="alarms of POSIX")
def test_a_pass_without_an_end_is_named(tmp_path: Path) -> None:
    text = "(float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }"
    blame = write_reproducer(
        parse(text),
        tmp_path,
        passes=["eliminate_identity", wait_for_ever],
        config={"verify.seconds": 0.3},
    )
    assert blame is not None
    assert (blame.pass_name, blame.kind) == ("wait_for_ever", "error")
    assert "wait_for_ever failed at rewrite #2" in blame.symptom
    assert "TimeoutError: it ran for more than 0.3 s" in blame.symptom
    found = replay(tmp_path, wait_for_ever)
    assert found.fails
    assert "ran for more than 0.3 s" in found.symptom
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="alarms of POSIX")
def test_an_alarm_of_the_program_is_kept(tmp_path: Path) -> None:
    rings: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rings.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 600)
        text = "(float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }"
        assert bisect(parse(text), passes=["eliminate_identity"]) is None
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not rings


def test_a_wrong_rewrite_before_a_pass_that_raises_is_to_blame(tmp_path: Path) -> None:
    passes = [SWAP.pass_, rewrite_then_raise]
    text = "(float[2] x) => (float[2] y) { a = Abs(x) b = Sub(a, x) y = Neg(b) }"
    blame = write_reproducer(parse(text), tmp_path, passes=passes)
    assert blame is not None
    assert (blame.pass_name, blame.kind) == (SWAP.name, "outputs")


def test_a_pass_that_raises_now_has_not_been_mended(tmp_path: Path) -> None:
    text = "(float[2] x) => (float[2] y) { a = Abs(x) y = Sub(a, x) }"
    write_reproducer(parse(text), tmp_path, passes=[SWAP.pass_])
    found = replay(tmp_path, rewrite_then_raise)
    assert found.fails
    assert "an Identity" in found.symptom


TWO = "(float[2] x) => (float[2] y) { a = Abs(x)  y = Neg(a) }"
ONES = {"x": np.ones(2, np.float32)}


def failure(kind: str = "outputs", anchor: str = "n") -> Failure:
    return Failure(
        kind,
        "no_such_pass",
        "whole",
        "it differs",
        "exact",
        1,
        "the law",
        anchor,
        ("a", "b"),
        ("c",),
    )


def test_what_the_error_of_a_bundle_says() -> None:
    bundle = Bundle(failure(), parse(TWO), None, ONES)
    unknown = " (its recorded result; the pass itself is unknown here)"
    for anchor, ran_pass, head in (
        ("n", True, ", at node 'n'"), ("n", False, f", at node 'n'{unknown}"), ("", False, unknown),
    ):  # fmt: skip
        bundle = Bundle(failure(anchor=anchor), parse(TWO), None, ONES)
        assert str(replayed_error(Replay(True, "it differs", ran_pass), bundle, "here")) == (
            f"here: no_such_pass is wrong{head}\nit differs\nlaw the law\n- a\n- b\n+ c"
        )


def test_a_bundle_that_is_written_again_has_no_result_of_before(tmp_path: Path) -> None:
    model = parse(TWO)
    Bundle(failure(), model, model, ONES).save(tmp_path)
    assert replay(tmp_path) == Replay(False, "the outputs agree", False)
    Bundle(failure(), model, None, ONES).save(tmp_path)
    assert not (tmp_path / "after.onnx").exists()
    assert load_bundle(tmp_path).after is None
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError) as raised:
        Bundle(failure(), model, None, ONES).save(tmp_path / "file" / "below")
    assert str(raised.value) == f"cannot write {tmp_path}/file/below: Not a directory"


@rewrite(op.Neg(var.x), opt_level=1)
def drop_neg(graph: Graph, x: Value) -> Value:
    return x


def test_the_symptom_of_a_pass_is_of_the_kind_of_the_failure() -> None:
    differs = "y: 2 of 2 elements differ, max abs 2.0e+00 at [0] (promised: exact)"
    for kind, feeds, expected in (
        ("outputs", ONES, differs), ("cannot run", ONES, differs), ("outputs", None, ""),
        ("view", ONES, ""), ("error", ONES, ""),
    ):  # fmt: skip
        symptom, made = symptom_of(drop_neg, parse(TWO), feeds, failure(kind))
        assert symptom == expected, kind
        assert made is not None
        assert [node.op_type for node in made.graph.node] == ["Abs"], kind
