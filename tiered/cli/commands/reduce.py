"""Write a smaller model that still fails, given a command that fails on it.

Examples:
    tiered reduce in.onnx small.onnx --check 'python fails.py {}'
"""

from __future__ import annotations

from typing import Annotated

from tiered.cli.files import check_input, check_output
from tiered.cli.line.declaration import Flags
from tiered.cli.output.terminal import printable, results, say
from tiered.cli.shared_options import ModelFile
from tiered.cli.source_mark import check_replaced
from tiered.support.amounts import counted
from tiered.support.errors import ModelError


def reduce(
    source: ModelFile, target: Annotated[str, Flags("OUT")], /, *, check: str, force: bool = False
) -> None:
    """Write a smaller model on which a command fails as it does on the one given.

    Args:
        target: The file to write.
        check: A command; {} is replaced by the model's file. A model fails if the command ends as
            on the whole model.
        force: Replace OUT even if it is an ONNX model.

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
    made = reduce_model(model, SameEnd(check), say)
    Model.from_proto(made).save(target)
    before, after = len(model.graph.node), len(made.graph.node)
    results().print(printable(f"{target}: {after} of {counted(before, 'node')}"), soft_wrap=True)
