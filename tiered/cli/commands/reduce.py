"""`tiered reduce MODEL OUT --check COMMAND`: a smaller model that still fails."""

from __future__ import annotations

from tiered.cli.files import check_input, check_output
from tiered.cli.output.terminal import notes, printable, results
from tiered.cli.source_mark import check_replaced
from tiered.support.amounts import counted
from tiered.support.errors import ModelError


def run_reduce(source: str, target: str, command: str, *, force: bool) -> None:
    """Write a smaller model on which a command fails as it does on the one given.

    Raises:
        UsageError: the command does not fail on the model, there is no such command, or the
            target is a model that must not be replaced.
        ModelError: a file cannot be read or written.
    """
    check_input(source)
    check_output(source, target)
    if not force:
        check_replaced(source, target=target)
    import onnx

    from tiered.extensions.debug import SameEnd, reduce_model
    from tiered.graph import Model

    Model.load(source)  # raises an error that describes an invalid file
    try:
        model = onnx.load(source)
    except OSError as error:
        raise ModelError(f"cannot read the weights of {source}: {error}") from error
    made = reduce_model(model, SameEnd(command), _say)
    Model.from_proto(made).save(target)
    before, after = len(model.graph.node), len(made.graph.node)
    results().print(printable(f"{target}: {after} of {counted(before, 'node')}"), soft_wrap=True)


def _say(text: str) -> None:
    notes().print(f"tiered: {printable(text)}", soft_wrap=True)
