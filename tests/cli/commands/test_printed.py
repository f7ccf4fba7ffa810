"""What commands print, and return, of results that are made by hand."""

import ast
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.recorded import assert_values
from tiered.cli.commands import (
    batch,
    command_in,
    completion,
    discover,
    docs,
    doctor,
    quantize,
    replay,
    verify,
)
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


def test_results_by_hand_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
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

    names = {
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
