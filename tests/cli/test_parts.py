"""Parts of commands, each called by itself."""

import contextlib
import gc
import json
import os
import signal
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from tests.recorded import assert_values
from tests.small import parsed
from tiered.cli import (
    bounded,
    certificates,
    command_run,
    facts,
    files,
    html,
    job_server,
    optimizing,
    source_mark,
    watch,
)
from tiered.cli.outcome import Outcome, note_outcome
from tiered.cli.pass_names import split_required
from tiered.cli.writing import Goal
from tiered.graph import TensorType
from tiered.runtime.worker.limits import LEAST
from tiered.support.errors import ModelError, VerificationError


def port(declared: str, known: object, *, is_ranked: bool = True) -> str:
    """Return an input as `inspect` shows it, by its type in the file and the one known here."""
    info = parsed(f"({declared}) => (y) {{ y = Neg(x) }}").main.input_infos[0]
    if not is_ranked:
        info.type.tensor_type.ClearField("shape")
    value: Any = SimpleNamespace(name="x", type=known, is_overridable=False)
    return str(facts._port(value, info))


def value(kind: object) -> Any:
    """Return what `facts` asks of a value of a type."""
    shape = getattr(kind, "shape", None)
    rank = None if shape is None else len(shape)
    return SimpleNamespace(name="x", type=kind, shape=shape, rank=rank)


def lost(old: str, *known: str, asked: Iterable[str] = ()) -> str:
    """Return what a model has that others lack; each is opsets and dtypes of weights."""
    return source_mark._lost(_model(old), [*map(_model, known)], [*asked])


def _model(text: str) -> onnx.ModelProto:
    opsets, _, dtypes = text.partition("|")
    made = onnx.ModelProto()
    for each in opsets.split():
        domain, _, version = each.rpartition(":")
        made.opset_import.add(domain=domain, version=int(version))
    for dtype in dtypes.split():
        made.graph.initializer.add(data_type=onnx.TensorProto.DataType.Value(dtype))
    return made


def test_parts_of_commands_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("a", "0123456789"), ("b", "abcde"), ("empty", "")):
        Path(name).write_text(text)

    def sampled(
        *spans: tuple[str, int, int], whole: int = 100, sample: int = 2, count: int = 3
    ) -> Any:
        for each, given in (("_WHOLE", whole), ("_SAMPLE", sample), ("_SAMPLES", count)):
            monkeypatch.setattr(source_mark, each, given)
        return [block.decode() for block in source_mark._sampled([*spans])]

    def denied(path: str) -> None:
        with monkeypatch.context() as changed:
            changed.setattr(os, "access", lambda *given: False)
            files.check_output("a", path)

    def within(nbytes: int) -> str:
        with monkeypatch.context() as changed:
            changed.setattr(bounded, "limited", lambda limit: contextlib.nullcontext())
            with bounded.within(nbytes, "memory"):
                return "runs"

    def shown(*options: str) -> list[object]:
        """Return the filters of warnings in a block without them."""
        with monkeypatch.context() as changed:
            changed.setattr("sys.warnoptions", list(options))
            with command_run._no_warnings():
                return [each[0] for each in warnings.filters[:1] if each[1:3] == (None, Warning)]

    names = {
        "port": port, "T": TensorType, "dynamic": lambda *kinds: facts._dynamic_dims(
            map(value, kinds)),
        "typed": lambda kind: facts._is_typed(value(kind)), "lost": lost, "sampled": sampled,
        "removes": removes,
        "denied": denied, "check_html": html.check_html, "within": within, "LEAST": LEAST,
        "reproduced": reproduced, "ModelError": ModelError,
        "rooted": rooted, "promised": promised, "page": page, "traced": traced, "saved": saved,
        "job": job, "are_passes": watch._are_passes,
        "ran": lambda *tokens: command_run.run([*tokens]),
        "judged": judged, "shown": shown, "served": served,
        "last": last, "required": lambda *given: split_required(given),
    }  # fmt: skip
    assert_values(__file__, names)


def removes(*given: tuple[bool, str, str]) -> bool:
    """Return whether one of some passes removes marks."""
    results: Any = [SimpleNamespace(ran=ran, name=name, text=text) for ran, name, text in given]
    return source_mark.removes_marks(results)


def judged(word: str, *, has_problem: bool) -> tuple[str, str]:
    """Return how a rewrite without a proof is judged, where a run would show it."""
    ran = SimpleNamespace(ok=True, worst="0.5")
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("tiered.certify.trial_runs.run_both", lambda *given: ran)
        proof = SimpleNamespace(is_proved=False, reason="why")
        problem = object() if has_problem else None
        each: Any = SimpleNamespace(proof=proof, problem=problem, word=word)
        return certificates._judged(each)


def rooted(**entries: str) -> tuple[str, str]:
    """Return the source and the root of the mark of a result of another file."""
    first = onnx.ModelProto()
    for key, entry in entries.items():
        first.metadata_props.add(key=getattr(source_mark, key), value=entry)
    model: Any = SimpleNamespace(origin=onnx.ModelProto(), journal=SimpleNamespace(stamp=int))
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(source_mark, "_read", lambda path: first)
        changed.setattr(source_mark, "_digest", lambda *given: "digest")
        changed.setattr(source_mark, "promises_of", lambda *given: {})
        mark = source_mark.source_mark(model, "b", "a")
    return mark.source, mark.root


def promised(known: str, asked: str) -> list[str]:
    """Return the digests that a model with some entries promises something about."""
    made = onnx.ModelProto()
    for key in known.split():
        made.metadata_props.add(key=getattr(source_mark, key), value="ab")
    for key in asked.split():
        made.metadata_props.add(
            key=getattr(source_mark, key), value=json.dumps({"numerics": "exact"})
        )
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(source_mark, "_digest", lambda *given: "own")
        return [*source_mark.promises_of("a", made)]


def page(path: str | None, trace: object) -> bool:
    """Return whether the page of a run has a result after it, where there is none to write."""
    with html.run_page_for(path, trace, "a.onnx", times=True) as made:  # type: ignore[arg-type]  # made by hand
        made.result = None
    return os.path.exists("p.html")


def traced(has_trace: bool, path: str | None) -> list[str]:
    """Return where a trace is saved."""
    seen: list[str] = []
    trace = SimpleNamespace(save=seen.append) if has_trace else None
    watchers: Any = SimpleNamespace(trace=trace, options=SimpleNamespace(trace=path))
    watch._save(watchers)
    return seen


def saved(*, written: str | None = "new", has_mark: bool = True, force: bool = False) -> list[str]:
    """Return what is called to save a result; `a` is a file that is there."""
    seen: list[str] = []
    options = SimpleNamespace(force=force, annotate=False)
    goal: Any = SimpleNamespace(written=written, path=written, options=options, storage=None)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("tiered.graph.io.save.save_model", lambda *g, **n: seen.append("saved"))
        changed.setattr(source_mark, "check_kept", lambda *given: seen.append("checked"))
        mark: Any = object() if has_mark else None
        Goal.save(goal, None, mark, ())  # type: ignore[arg-type]  # handed on
    return seen


def reproduced(outcome: object, *, rewrites: object = 7, **given: str) -> list[object]:
    """Return the note on a bundle that is written, and what it is written with."""
    seen: list[object] = []

    def write(*files: object, **settings: object) -> object:
        seen.append((*files, settings["within"], settings["input_shapes"], settings["opt_level"]))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    options = SimpleNamespace(**{
        "opt_level": 3, "input_shape": (), "dim": (), "inputs": (), "load": ("own.py",), **given
    })  # fmt: skip
    prepared: Any = SimpleNamespace(
        options=options, passes="p", edits=(), settings={"rewrite_limit": 3, "seed": 1}
    )
    error: Any = VerificationError("differs")
    error.rewrites = rewrites
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("tiered.extensions.debug.write_reproducer", write)
        changed.setattr(optimizing, "load_model", lambda source: "model")
        changed.setattr(optimizing, "shapes_of_inputs", lambda *shapes: {"x": shapes})
        return [optimizing._reproduced("a.onnx", "folder", prepared, error), *seen]


def job(
    code: int = 0, *, out: str | None = "out", is_made: bool = True, target: str | None = "a",
    force: bool = False, outcomes: int = 0,
) -> list[object]:  # fmt: skip
    """Return the checks of a job of a batch, and whether its file has a digest."""
    seen: list[object] = []

    def run(words: list[str]) -> int:
        for _ in range(outcomes):
            note_outcome(Outcome("a", None, None, None))  # type: ignore[arg-type]  # made by hand
        if out is not None and is_made:
            Path(out).write_text("made")
        return code

    def checks(name: str) -> Any:
        return lambda *given, **named: seen.append((name, *given, *named.values()))

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(job_server, "run_command_line", run)
        changed.setattr(job_server, "decided_by", lambda prepared: {"decided"})
        for name in ("check_output", "check_replaced", "check_kept_file"):
            changed.setattr(job_server, name, checks(name))
        request = {"words": [], "target": target, "files": ["b", "a"], "force": force, "out": out}
        made = job_server._run(request)
    Path("out").unlink(missing_ok=True)
    return [*seen, bool(made["sha256_out"]), made["figures"], len(made["sha256_in"])]


def served(*kinds: str) -> list[str]:
    """Return what the garbage collector is asked for while jobs are served."""
    seen: list[str] = []
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(job_server, "_LOADED", 2)
        changed.setattr(job_server, "held_by", lambda: 0)
        changed.setattr(gc, "collect", lambda: seen.append("collect"))
        changed.setattr(gc, "freeze", lambda: seen.append("freeze"))
        server = job_server.JobServer()
        changed.setattr(server, "_do", lambda request: None)
        for kind in kinds:
            server.answer({"do": kind, "memory": None})
            seen.append(kind)
    return seen


def last(*, own_group: bool, can_kill: bool = True) -> list[object]:
    """Return how a server ends whose parent is gone."""
    seen: list[object] = []

    def end(request: object) -> None:
        raise EOFError

    system = SimpleNamespace(getpgrp=lambda: 7 if own_group else 8, getpid=lambda: 7,
                             _exit=seen.append)  # fmt: skip
    if can_kill:
        system.killpg = lambda *given: seen.append(given == (7, signal.SIGKILL))
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(job_server, "os", system)
        changed.setattr(job_server, "receive", end)
        job_server._read(None, None)  # type: ignore[arg-type]  # nothing is read
    return seen
