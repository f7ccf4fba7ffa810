"""The files of a command: read, check and choose them, and protect inputs from overwriting."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from tiered.cli.output.terminal import printable
from tiered.support.errors import ModelError, UsageError

if TYPE_CHECKING:
    from tiered.context import PassContext
    from tiered.graph import Model
    from tiered.pipeline import Pipeline


def load_model(file: str) -> Model:
    """Read a model.

    Raises:
        ModelError: there is no such file, or it holds no ONNX model.
    """
    check_input(file)
    from tiered.graph import Model

    return Model.load(file)


def check_input(file: str) -> None:
    """Check the file to read, before large packages are imported.

    Raises:
        ModelError: there is no such file, or it is a directory.
    """
    try:
        mode = os.stat(file).st_mode
    except (OSError, ValueError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise ModelError(f"cannot read {printable(file)!r}: {reason}") from error
    if stat.S_ISDIR(mode):
        raise ModelError(
            f"cannot read {printable(file)!r}: is a directory; expected an ONNX file "
            "(`tiered batch DIR --out-dir OUT` optimises all models of a folder)"
        )


def choose_output(out: str | None, output: str | None, *, may_lack: bool) -> str | None:
    """Return the file to write, given as OUT or by -o; None if there is none.

    Raises:
        UsageError: both are given, or none although one is needed.
    """
    if out is not None and output is not None:
        raise UsageError(
            f"two files to write: {out!r} and -o {output!r}; name only one (--passes names passes)"
        )
    target = out if output is None else output
    if target is None and not may_lack:
        raise UsageError("no file to write: add OUT or -o OUT, or --dry-run to write nothing")
    return target


def check_output(source: str, target: str) -> None:
    """Check the file to write, before any work is done.

    Raises:
        UsageError: it is the input file, under any path or link.
        ModelError: nothing can be written there.
    """
    name = repr(printable(target))
    if _is_same_file(source, target):
        raise UsageError(f"{name} is the model that is read ({source!r}); write to another file")
    folder = os.path.dirname(target) or "."
    if os.path.isdir(target) or not os.path.basename(target):
        raise ModelError(f"cannot write {name}: is a directory; expected a file name")
    if os.path.exists(target) and not os.path.isfile(target):
        raise ModelError(f"cannot write {name}: not a regular file")
    if not os.path.isdir(folder):
        raise ModelError(f"cannot write {name}: no directory {printable(folder)!r}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ModelError(f"cannot write {name}: no permission to write into {printable(folder)!r}")


def check_data_files(model: Model, target: str) -> None:
    """Raise if writing the target would overwrite weights of the model that is read.

    Raises:
        UsageError: the target, or its data file, is one of the model's data files.
    """
    from tiered.graph.io.save import data_files
    from tiered.graph.queries.stored_tensors import stored_tensors

    written = {os.path.realpath(name) for name in (target, *data_files(target))}
    for name, tensor in stored_tensors(model.graphs()):
        if tensor.is_external and os.path.realpath(tensor.external_span()[0]) in written:
            raise UsageError(
                f"writing {printable(target)!r} would overwrite {tensor.external_span()[0]!r}, "
                f"which holds {printable(name)!r} of the model that is read; choose another name"
            )


def _is_same_file(source: str, target: str) -> bool:
    try:
        return os.path.samefile(source, target)
    except OSError:  # the target does not exist yet
        return os.path.realpath(source) == os.path.realpath(target)


def run_first(passes: Pipeline, model: Model, context: PassContext) -> None:
    """Run the passes of --after: listed ones whatever their level, and no parked one."""
    from tiered.passes.execution import execute
    from tiered.passes.interface.pass_info import Place

    with context:
        execute(passes, model, context, Place(asked=True))
