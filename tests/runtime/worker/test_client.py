"""The worker process: same results as a session, and what ends it is an error and no more."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

from tiered import Model, get_pass
from tiered.runtime import Session, Worker, feasible_inputs, shared_worker
from tiered.runtime.compare.outputs import compare
from tiered.runtime.opening import Opening
from tiered.runtime.worker import client
from tiered.support.errors import Crashed, HelperError, OutOfMemory, RuntimeFailure, TimedOut
from tiered.testing import parse

f32 = partial(np.array, dtype=np.float32)
i64 = partial(np.array, dtype=np.int64)


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 3]> {text}')


NEG = model("g (float[N] x) => (float[N] y, float[N] z) { y = Neg(x)  z = Abs(x) }")
DIVIDES = model("g (int32[N] x, int32[N] y) => (int32[N] z) { z = Div(x, y) }")
LARGE = model("g (int64[1] s) => (float[N] y) <float[1] one = {1}> { y = Expand(one, s) }")
ENDLESS = model(
    """g (bool go, float[1] x) => (float[1] y) {
         y = Loop(, go, x) <body = b (int64 i, bool c, float[1] a) => (bool d, float[1] e)
             { d = Identity(c)  e = Neg(a) }>
       }"""
)
X = {"x": f32([1, -2])}
# The one quotient that no register holds; the processor ends the program.
TRAPS = {"x": np.array([-(2**31)], np.int32), "y": np.array([-1], np.int32)}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(seconds=20) as made:
        yield made


def test_results_are_those_of_a_session(worker: Worker) -> None:
    with worker.open(NEG) as session:
        assert session.inputs == ("x",)
        assert session.outputs == ("y", "z")
        assert compare(Session(NEG).run(X), session.run(X)).ok
        assert list(session.run(X, ["z"])) == ["z"]
        assert session.run(X, []) == {}
    assert compare(Session(NEG).run(X), worker.run(NEG.SerializeToString(), X)).ok


def test_a_module_beside_a_script_hides_none_of_pythons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("types", "queue", "typing"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not the one that was meant')")
    monkeypatch.syspath_prepend(tmp_path)
    with Worker() as worker, worker.open(NEG) as session:
        assert session.run({"x": f32([1])})["y"] == [-1]


def test_a_file_is_opened_with_its_weights(worker: Worker, tmp_path: Path) -> None:
    proto = model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    onnx.save_model(
        proto,
        str(tmp_path / "m.onnx"),
        save_as_external_data=True,
        size_threshold=0,
        convert_attribute=True,
    )
    assert worker.run(tmp_path / "m.onnx", X)["y"].tolist() == [2, 0]


def test_the_reference_runs_in_it_too(worker: Worker) -> None:
    where = model("g (float[1] x, bool[1] c) => (float[1] y) { y = Where(c, x, x) }")
    feeds = {"x": f32([-0.0]), "c": np.array([True])}
    assert np.signbit(worker.run(where, feeds, reference=True)["y"]).all()


def test_the_process_is_reused_and_closed(worker: Worker) -> None:
    worker.run(NEG, X)
    pid = worker.pid
    worker.run(NEG, X)
    assert worker.pid == pid
    with Worker() as other:
        other.run(NEG, X)
        assert other.pid not in (None, pid, os.getpid())
    assert other.pid is None


def test_refusals_are_those_of_a_session(worker: Worker) -> None:
    wrong: list[dict[str, Any]] = [{}, {"x": [1.0]}, {"x": i64([1])}]
    for feeds in wrong:
        with pytest.raises(RuntimeFailure) as here:
            Session(NEG).run(feeds)
        with pytest.raises(RuntimeFailure) as there:
            worker.run(NEG, feeds)
        assert str(here.value) == str(there.value)
    with pytest.raises(RuntimeFailure, match="it has no output 'nope'"):
        worker.open(NEG).run(X, ["nope"])
    with pytest.raises(RuntimeFailure, match="cannot load model 'g'"):
        worker.open(model("g (float[N] x) => (float[N] y) { y = Nope(x) }"))
    assert worker.run(NEG, X)


def test_a_crash_is_an_error_and_the_next_run_goes_on(worker: Worker) -> None:
    open_before = worker.open(NEG)
    with pytest.raises(Crashed, match="the runtime crashed while running model 'g'"):
        worker.run(DIVIDES, TRAPS)
    assert open_before.run(X)["y"].tolist() == [-1, 2]
    ones = np.ones(1, np.int32)
    assert worker.run(DIVIDES, {"x": ones, "y": ones})["z"].tolist() == [1]


def test_an_endless_loop_is_an_error() -> None:
    with Worker() as worker:
        session = worker.open(ENDLESS)
        worker.seconds = 0.5  # for the run alone: on a busy machine a start may take longer
        with pytest.raises(TimedOut, match=r"running model 'g' .* took more than 0\.5 s"):
            session.run({"go": np.array(True), "x": f32([1])})
        worker.seconds = 2
        with pytest.raises(TimedOut):
            feasible_inputs(ENDLESS, session=session)
        worker.seconds = None
        assert worker.run(NEG, X)


def test_an_enormous_tensor_is_an_error(worker: Worker) -> None:
    with pytest.raises(OutOfMemory, match="Failed to allocate memory"):
        worker.run(LARGE, {"s": i64([2**50])})
    assert worker.run(LARGE, {"s": i64([2])})["y"].tolist() == [1, 1]


def test_a_limit_of_memory_holds() -> None:
    with Worker(memory=200 * 2**20) as worker:
        assert worker.run(LARGE, {"s": i64([2**20])})["y"].size == 2**20
        with pytest.raises(OutOfMemory):
            worker.run(LARGE, {"s": i64([2**27])})


def test_a_process_that_was_killed_is_replaced(worker: Worker) -> None:
    session = worker.open(NEG)
    pid = worker.pid
    assert pid is not None
    os.kill(pid, 9)
    # The process ends when the last of its threads does.
    deadline = time.monotonic() + 120
    while worker.pid == pid and time.monotonic() < deadline:
        time.sleep(0.01)
    assert session.run(X)["y"].tolist() == [-1, 2]


def test_a_process_that_cannot_start_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('no such wheel')")
    monkeypatch.syspath_prepend(tmp_path)
    with Worker() as worker, pytest.raises(HelperError, match=r"cannot start.*no such wheel"):
        worker.run(NEG, X)


BRANCHES = """(float[2] x) => (float[2] y) <bool c = {1}, float[2] w = {1,2}> {
    k = If (c) <then_branch = t () => (float[2] p) { p = Neg(w) },
                else_branch = e () => (float[2] q) { q = Abs(w) }>
    y = Add(x, k) }"""


@pytest.mark.parametrize("command", [("no-such-python",), (sys.executable, "-c", "import nothing")])
def test_folding_does_not_go_on_without_the_process(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiered.runtime.worker.child.PYTHON", command)
    model = Model.from_proto(parse(BRANCHES))
    with pytest.raises(HelperError, match="the process that runs models cannot start"):
        get_pass("fold_constant").apply(model)
    monkeypatch.undo()
    get_pass("fold_constant").apply(model)
    assert [node.op_type for node in model.main.nodes] == ["Add"]


def test_threads_share_a_worker(worker: Worker) -> None:
    session, results = worker.open(NEG), dict[int, Any]()

    def run(number: int) -> None:
        results[number] = session.run({"x": f32([number])})["y"].tolist()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [-number] for number in range(8)}


def test_an_interrupt_leaves_no_answer_for_the_next(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(stream: Any) -> Any:
        raise KeyboardInterrupt

    session = worker.open(NEG)
    with monkeypatch.context() as patched:
        patched.setattr("tiered.runtime.worker.child.receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.run(X)
    assert session.run(X, ["z"])["z"].tolist() == [1, 2]


def test_the_process_ends_with_its_parent() -> None:
    code = (
        "from tiered.runtime import Worker\n"
        "worker = Worker()\n"
        "worker.start()\n"
        "print(worker.pid, flush=True)\n"
        "import os; os._exit(1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    pid, deadline = int(done.stdout), time.monotonic() + 120
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_running(pid)


def _is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_one_worker_is_shared() -> None:
    assert shared_worker() is shared_worker()


def test_raw_types_cross(worker: Worker) -> None:
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)],
        "cast",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, ["n"])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    assert worker.run(proto, X)["y"].dtype == ml_dtypes.bfloat16


@pytest.mark.skipif(sys.platform != "linux", reason="the out-of-memory killer is Linux's")
def test_linux_ends_it_before_its_parent_and_after_a_process_of_half_the_memory() -> None:
    with Worker() as worker:
        worker.open(NEG)
        process = worker._child.process.pid if worker._child is not None else 0
        scores = [int(Path(f"/proc/{pid}/oom_score").read_text()) for pid in (process, os.getpid())]
        assert scores[0] > scores[1]
        added = [
            int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (process, os.getpid())
        ]
        assert added[0] - added[1] < 500


# --- timed runs -----------------------------------------------------------------------------------


def test_runs_are_timed_in_the_worker(worker: Worker) -> None:
    with worker.open(NEG, setting=Opening("basic", 1)) as session:
        session.hold([X, {"x": f32([3])}])
        timing = session.time(1, 4, 2)
    assert (len(timing.wall), len(timing.processor)) == (4, 4)
    assert min(timing.wall) > 0
    assert timing.started > 0
    assert timing.memory is None or timing.memory >= 0


def test_feeds_of_timed_runs_are_checked(worker: Worker) -> None:
    with worker.open(NEG) as session, pytest.raises(RuntimeFailure, match="takes an array"):
        session.hold([{"x": 1.0}])


def test_a_timed_run_that_fails_is_an_error(worker: Worker) -> None:
    with worker.open(NEG) as session:
        session.hold([{}])
        with pytest.raises(RuntimeFailure, match="failed in a timed run"):
            session.time(0, 1, 0)


def test_a_process_that_has_ended_times_nothing() -> None:
    with Worker() as own, own.open(NEG) as session:
        session.hold([X])
        own.close()
        with pytest.raises(RuntimeFailure, match="has ended"):
            session.time(0, 1, 0)


class Asked(Worker):
    """A worker that notes what it is asked, and is any process that a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.current: object = None
        self.asked: list[dict[str, Any]] = []

    @property
    def generation(self) -> object:
        return self.current

    def ask(self, request: dict[str, Any], blobs: Any, doing: str) -> Any:
        self.current = self.current or object()
        self.asked.append({**request, "doing": doing})
        done = {"inputs": ["x"], "outputs": ["y"]} if request["do"] == "open" else {}
        return client._Answer(done, ())


def test_a_session_is_opened_again_in_another_process_and_closed_in_its_own() -> None:
    worker = Asked()
    session = worker.open(NEG)
    session.run({})
    session.close()
    session.run({})
    worker.current = object()
    session.run({})
    worker.current = None
    session.run({})
    worker.current = None
    session.close()
    session.close()
    assert [each["do"] for each in worker.asked] == [
        "open", "run", "close", "open", "run", "open", "run", "open", "run",
    ]  # fmt: skip
    for current in (None, object()):
        worker.current = current
        with pytest.raises(RuntimeFailure, match=r"the process that ran .* has ended"):
            session.time(0, 1, 0)


def test_a_session_names_its_model_and_its_folder(tmp_path: Path) -> None:
    worker = Asked()
    worker.open(NEG, folder=os.path.relpath(tmp_path), label="mine")
    worker.open(NEG)
    first, second = worker.asked
    assert (first["doing"], second["doing"]) == ("opening mine", "opening model 'g' (outputs y, z)")
    assert [each["folder"] for each in worker.asked] == [str(tmp_path), ""]
    assert [each["id"] for each in worker.asked] == [1, 2]


def test_a_worker_greets_its_process_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Process:
        is_ready, is_alive, is_deaf = False, True, False

        def __init__(self, server: str) -> None:
            calls.append("start")
            self.process = SimpleNamespace(pid=7)

        def greet(self) -> None:
            calls.append("greet")
            if self.is_deaf:
                raise HelperError("it does not answer")
            self.is_ready = True

        def end(self) -> None:
            calls.append("end")

    monkeypatch.setattr(client, "Child", Process)
    worker = Worker()
    pids = [worker.pid]
    worker.ready()
    worker.ready()
    assert calls == ["start", "greet"]
    pids.append(worker.pid)
    Process.is_alive = False
    assert [*pids, worker.pid] == [None, 7, None]
    Process.is_deaf = True
    with pytest.raises(HelperError, match="it does not answer"):
        worker.ready()
    assert calls == ["start", "greet", "end", "start", "greet", "end"]
    worker.close()
    assert calls[6:] == []
