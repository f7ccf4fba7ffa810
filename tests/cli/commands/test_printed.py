"""What commands print, and return, of results that are made by hand."""

import ast
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.recorded import assert_values
from tiered.cli import batches
from tiered.cli.commands import (
    batch,
    bench,
    certify,
    command_in,
    completion,
    diff,
    discover,
    docs,
    doctor,
    explain,
    layout,
    operators,
    optimize,
    options as options_command,
    partition,
    passes,
    quantize,
    replay,
    split,
    tune,
    verify,
)
from tiered.cli.commands.bench import BenchOptions
from tiered.cli.commands.tune import TuneOptions
from tiered.cli.line.reader import WrongLine
from tiered.cli.output.terminal import results
from tiered.extensions import debug
from tiered.extensions.fleet import crash_bundle
from tiered.support.errors import PassNotFoundError


def made(**given: Any) -> Any:
    """Return something with some attributes."""
    return SimpleNamespace(**given)


def size(nodes: int, nbytes: int = 0) -> Any:
    return made(nodes=nodes, nbytes=nbytes)


def step(before: Any, after: Any, taken: int | None = None, refused: int | None = None) -> Any:
    """Return a step of a diagnosis."""
    named = made(name="fix", what="dims")
    return made(step=named, before=before, after=after, taken=taken, refused=refused)


def commands(*steps: Any, to: tuple[str, ...] = (), inputs: tuple[str, ...] = ()) -> None:
    """Print the commands of a diagnosis."""
    options = made(to=to, precision=made(inputs=inputs))
    found = made(made=made(changing=steps, options=options), remedies=[made(what="A", why="b")],
                 commands=lambda: ["first", "second"], line=lambda: "both")  # fmt: skip
    doctor._print_commands(results(), found)


def suggestion(before: Any, after: Any, error: str = "sqnr: 3 dB") -> Any:
    return made(what="int8", before=before, after=after, error=error, line="tiered it")


def finding(nodes: int, places: int = 2) -> Any:
    """Return a finding that saves nodes, or bytes."""
    return made(nodes=nodes, gain=(nodes * 3, 40), law="a => b", places=range(places),
                domain="reals", source="a", target="b")  # fmt: skip


def layer(node: str = "conv", reason: str = "", **changed: Any) -> Any:
    """Return a layer of a quantisation."""
    given = {"output": "c", "op_type": "Conv", "dtype": "int8", "scale": 0.125, "sqnr": 41.5,
             "contribution": 0.25, "macs": 12, **changed}  # fmt: skip
    return made(node=node, reason=reason, **given)


def quantized(*rows: Any, limit: int | None = None, **changed: Any) -> None:
    """Print the report of a quantisation."""
    given = {"quantized": 1, "share_of_macs": 0.5, "floating": [], "others": 0, "sqnr": None,
             "differing": None, **changed}  # fmt: skip
    quantize._print(results(), made(rows=rows, **given), limit)


def output(**changed: Any) -> Any:
    """Return how an output compares."""
    difference = made(name="y", ok=True, max_abs=0.5, max_rel=0.25, max_ulp=3, cosine=1.0,
                      nan_mismatch=0, reason="", note="")  # fmt: skip
    given = {"difference": difference, "dtype": "float32", "shape": (2, 3), "argmax": None,
             "nans": (0, 0), **changed}  # fmt: skip
    return made(**given)


def explained(count: int, *, everything: bool, **changed: Any) -> None:
    """Print what a pass does at some nodes."""
    verdicts = ("no match", "fires", "no match", "declined")
    found = [
        made(verdict=verdicts[at % 4], op_type="Neg", node=f"n{at}" if at else "",
             reason="why" if at % 4 != 1 else "", matched=("a",), **changed)
        for at in range(count)
    ]  # fmt: skip
    explain._print(results(), cast("Any", "zz"), found, everything=everything)


def decided(level: int | None, reason: str, *, run: bool = False) -> None:
    """Print why a pass does not run at level 2."""
    pass_ = made(name="zz", info=made(opt_level=level))
    explain._print_decision(pass_, made(run=run, reason=reason), made(opt_level=2))


def regions(count: int, limit: int | None) -> None:
    """Print the regions of a partition."""
    rows: Any = [
        made(name=f"r{at}", nodes=at, bytes_in=at, bytes_out=2 * at, multiply_adds=at + 1,
             operators=Counter(Neg=at + 1, Abs=1))
        for at in range(1, count)
    ]  # fmt: skip
    host = made(name="host", nodes=2, bytes_in=0, bytes_out=0, multiply_adds=0,
                operators=Counter(Sin=2))  # fmt: skip
    partition._print(results(), "m.onnx", "npu takes", [*rows, host], limit)


def swept(*steps: Any, empty: tuple[str, ...] = (), left: Any = (), domain: str = "bits") -> Any:
    return certify._said(made(common=3, steps=steps, empty=empty, domain=domain), list(left))


def proof(domain: str = "bits", **changed: Any) -> Any:
    """Return a step of a proof."""
    given = {"is_proved": True, "domain": domain, "bound": 0.0, "axioms": (), "is_for_all": True,
             "has_named_sizes": False, "reason": "why", **changed}  # fmt: skip
    return made(name="y", problem=None, proof=made(**given))


def laid_out(count: int, limit: int | None) -> None:
    """Print the Transposes of a report."""
    left = [
        made(name=f"t{at}", perm=(0, 1), nbytes=at, above="a", below="b") for at in range(count)
    ]
    report = made(transposes=(3, count), nbytes=(2048, 8), left=left,
                  greedy=made(transposes=2, nbytes=16))  # fmt: skip
    layout._print(report, limit)


def test_results_by_hand_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").write_text("")

    def ended(*oks: bool) -> int:
        monkeypatch.setattr(batch, "optimized", lambda *given: [made(ok=ok) for ok in oks])
        return batch.batch("a", **dict.fromkeys(("options", "watch", "batch"), made()))

    def completed(has_stdout: bool) -> None:
        with monkeypatch.context() as changed:
            if not has_stdout:
                changed.setattr(sys, "stdout", None)
            changed.setattr(completion, "SCRIPTS", {"bash": "\nscript\n"})
            completion.completion("bash")

    def replayed(*, is_crash: bool, is_lost: bool = False, where: str | None = None) -> None:
        def fails(*given: object) -> None:
            raise PassNotFoundError("no pass named 'x'")

        crash = made(status="killed", replay=lambda folder: made(is_lost=is_lost, symptom="gone"))
        monkeypatch.setattr(crash_bundle, "is_crash_bundle", lambda folder: is_crash)
        monkeypatch.setattr(crash_bundle.CrashBundle, "load", lambda folder: crash)

        monkeypatch.setattr(
            debug, "load_bundle", lambda folder: made(failure=made(pass_source=where))
        )
        monkeypatch.setattr(debug, "replay", fails)
        replay.replay("folder", load=())

    def command(words: str) -> object:
        try:
            found = command_in(words.split())
        except WrongLine as error:
            return str(error).partition(" Available")[0]
        return found and (found[0].name, found[1])

    def listed(*, as_json: bool) -> None:
        known = {"x": made(name="a.b", takes="int", default=3, doc="It counts.")}
        monkeypatch.setattr(options_command, "config_options", lambda: known)
        options_command.options(as_json=as_json)

    def optimized(*names: str | None, out_dir: str | None = None) -> object:
        called: list[object] = []
        monkeypatch.setattr(batches, "optimize_into_folder", lambda *given: given[0])
        monkeypatch.setattr(optimize, "run_prepared", lambda *given: called.append(given[1:]))
        monkeypatch.setattr(optimize, "PreparedRun", made(of=lambda *given: None))
        options = made(out_dir=out_dir)
        return optimize.optimize(*cast("Any", names), options=options, watch=made()), called

    def operators_of(*missing: list[str], without: str | None = None) -> None:
        summaries = [
            made(name=f"Op{at}", domain="own" if at else "", aspects=["a", "b"], missing=each)
            for at, each in enumerate(missing)
        ]
        operators._print_all(results(), [vars(each) for each in summaries], without)

    def measured(*memory: int | None, threads: int = 1, ratios: Any = ()) -> None:
        """Print a measurement of models."""
        monkeypatch.setattr("onnxruntime.__version__", "1")
        span = made(low=0.001, median=0.002, high=0.25, confidence=0.99)
        models = [
            made(letter=letter, name=f"{letter}.onnx", latency=span, start=span, runs=1200,
                 memory=each, file_bytes=2048)
            for letter, each in zip("AB", memory, strict=False)
        ]  # fmt: skip
        opening = made(provider="CPU", threads=threads, level="all")
        found: Any = made(models=models, opening=opening, clock="wall", rounds=range(len(memory)),
                          ratios=ratios, remarks=["a remark"])  # fmt: skip
        bench._print(found, BenchOptions(), ())

    def passes_of(name: str) -> None:
        monkeypatch.setattr(passes, "describe", lambda info: info.name)
        passes.passes(name, as_json=True)

    def checked(**given: Any) -> None:
        tune._check_files("m.onnx", "out.onnx", TuneOptions(**given))

    names = {
        "measured": measured, "ratio": lambda: made(
            of="B", verdict="faster", interval=made(low=0.5, median=0.75, high=1.0)),
        "passes": passes_of,
        "listed": listed, "optimized": optimized, "operators": operators_of,
        "lowered": operators._is_lowered, "explained": explained, "decided": decided,
        "regions": regions, "swept": swept,
        "proof": proof, "laid_out": laid_out, "cut": diff._cut, "ran": certify._ran,
        "checked": checked, "parts": lambda *parts, **given: split._print("m", parts, **given),
        "ended": ended, "completed": completed, "replayed": replayed, "command": command,
        "size": size, "step": step, "commands": commands, "finding": finding, "layer": layer,
        "quantized": quantized, "output": output, "cells": verify.output_cells,
        "record": verify.output_record,
        "suggestion": suggestion,
        "suggestions": lambda *all_: doctor._print_suggestions(
            results(), made(suggestions=all_)),
        "said": lambda *all_, left=0: discover._said(
            9, made(subgraphs=4, kinds=2, skipped=1, left=left, findings=all_)),
        "reasons": lambda text: [*docs._reasons(ast.parse(text))],
        "vocabularies": lambda text: [*docs._vocabularies(ast.parse(text))],
        "places": lambda name: [*docs._places(name)],
    }  # fmt: skip
    assert_values(__file__, names)
