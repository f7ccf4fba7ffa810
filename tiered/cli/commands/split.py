"""Write consecutive parts of a model, cut at tensors; `tiered merge` puts them together again.

A part also returns what later parts read of it, under the same names.

Examples:
    tiered split in.onnx --at /layer1/Relu_output_0,hidden --out-dir parts
    tiered split in.onnx --at left+right --out-dir parts --verify

With `--json` one object:
    model, verified
    parts: [{file, nodes, inputs, outputs}]; inputs and outputs have the type by name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tiered.cli.bounded import MemoryBound
from tiered.cli.effects import Effect
from tiered.cli.files import check_data_files, check_output, load_model
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shared_options import RUNS, WHOLE, Json, ModelFile, Names, Verify, runs_model
from tiered.cli.source_mark import check_replaced, source_mark, write_mark
from tiered.support.amounts import counted
from tiered.support.errors import ModelError, UsageError
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.graph import Model


class SplitOptions(Record):
    """The options of `tiered split`."""

    at: Names = ()
    """Tensors to cut at, from the inputs to the outputs: a,b makes three parts. Tensors of one cut
    are joined by +: a+b makes two. Repeatable."""
    out_dir: str | None = None
    """The folder for the parts: MODEL_0.onnx, MODEL_1.onnx, ... It is made if it is not there."""
    verify: Verify = None
    """Run the model, and the parts one after the other, and compare the outputs bit by bit. Exit
    code 3 if they differ."""
    inputs: Names = ()
    """Inputs for --verify: x.npy, feeds.npz or a folder; generated without any. Repeatable."""
    force: bool = False
    """Replace ONNX models that are not earlier results of MODEL."""
    json: Json = False
    """Print one JSON object instead of text; --out-dir may be missing then."""

    EFFECTS = (WHOLE, Effect(("inputs",), RUNS, lambda of: runs_model(of("verify"))))


def split(file: ModelFile, /, *, options: SplitOptions, bound: MemoryBound) -> None:
    """Split the model of a file.

    Raises:
        UsageError: no tensor or folder is named, or there is no such tensor.
        ModelError: a file cannot be read or written.
        VerificationError: the parts compute something else; nothing is written.
    """
    cuts = _cuts(options.at)
    if not cuts:
        raise UsageError("nowhere to cut: type --at TENSOR, or --at A,B for three parts")
    if options.out_dir is None and not options.json:
        raise UsageError("no folder to write to: type --out-dir DIR")
    with Progress() as progress:
        model = load_model(file)
        from tiered.pipeline.compose.extraction import split_models
        from tiered.rewriter.idioms.main_tensors import needed_nodes

        progress.say(f"splitting {printable(file)}")
        parts = split_models(model.copy(), cuts)
        names = _names(file, options.out_dir, len(parts))
        if verified := runs_model(options.verify):
            from tiered.verify.merged import check_split

            progress.say("running the model and its parts")
            check_split(model, parts, options.inputs)
        if options.out_dir is not None:
            _save(file, model, options, names, parts)
    dead = len(model.main.nodes) - len(needed_nodes(model.main.outputs))
    described = [_described(name, part) for name, part in zip(names, parts, strict=True)]
    if options.json:
        record = {"model": file, "verified": verified, "unneeded_nodes": dead}
        print_json({**record, "parts": described})
    else:
        _print(file, described, verified=verified)
        if dead:
            text = f"left out: {counted(dead, 'node')} that no output needs"
            results().print(text, soft_wrap=True)


def _cuts(entries: Sequence[str]) -> list[list[str]]:
    """Return the tensors of each cut."""
    cuts = [cut for entry in entries for cut in entry.split(",") if cut]
    return [[name for name in cut.split("+") if name] for cut in cuts]


def _names(file: str, folder: str | None, count: int) -> list[str]:
    stem = os.path.splitext(os.path.basename(file))[0]
    return [os.path.join(folder or "", f"{stem}_{at}.onnx") for at in range(count)]


def _save(
    file: str, model: Model, options: SplitOptions, names: Sequence[str], parts: Sequence[Model]
) -> None:
    """Write the parts; the folder is checked for all of them first.

    Raises:
        UsageError: a part would overwrite the model, its weights, or a model that is not an earlier
            result.
        ModelError: a file cannot be written.
    """
    folder = options.out_dir or "."
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise ModelError(f"cannot make {printable(folder)!r}: {error.strerror}") from error
    for name in names:
        check_output(file, name)
        check_data_files(model, name)
        if not options.force:
            check_replaced(file, target=name)
    mark = source_mark(model, file)
    for name, part in zip(names, parts, strict=True):
        write_mark(part, mark)
        part.save(name)


def _described(name: str, part: Model) -> dict[str, Any]:
    from tiered.cli.facts import declared_types

    return {
        "file": name,
        "nodes": sum(len(graph.nodes) for graph in part.graphs()),
        "inputs": declared_types(part.main.inputs, part.main.input_infos),
        "outputs": declared_types(part.main.outputs, part.main.output_infos),
    }


def _print(file: str, parts: Sequence[dict[str, Any]], *, verified: bool) -> None:
    console = results()
    console.print(printable(f"{file} -> {counted(len(parts), 'part')}"), soft_wrap=True)
    for part in parts:
        nodes = counted(part["nodes"], "node")
        console.print(printable(f"{part['file']}: {nodes}"), soft_wrap=True)
        for what in ("inputs", "outputs"):
            named = ", ".join(f"{name}: {kind}" for name, kind in part[what].items())
            console.print(printable(f"  {what}: {named or 'none'}"), soft_wrap=True)
    said = "yes (exact; the parts ran one after the other)" if verified else "no (--verify)"
    console.print(f"verified: {said}")
