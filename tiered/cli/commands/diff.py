"""Print what changed between two models: interface, operators, constants, nodes, names.

Nothing is run. Nodes are matched by what they compute, by their neighbours and by names, so it
works for the results of any tool.

Examples:
    tiered diff before.onnx after.onnx
    tiered diff before.onnx after.onnx --html diff.html
    tiered diff before.onnx after.onnx --exit-code --ignore properties,names

With `--json`, one object:
    files: both, as typed. same: whether nothing differs. differs_in: what does, in words.
    before, after: {nodes, operators, parameters, nbytes}.
    settings: [{what, before, after}], versions, producer, metadata and texts that differ.
    interface: [{kind, before, after, type_before, type_after, note}], inputs and outputs.
    functions: [{name, what}], what is added or removed.
    tensors: [{graph, what, before, after, type_before, type_after, bytes_before, bytes_after}];
        what is a list of added, removed, renamed, dtype, dims, values, moved.
    places: [{graph, before, after, changes}]: nodes that differ and belong together, [{name,
        op_type}]; changes are [{before, after, notes}], nodes of both models.
    renamed: [{graph, kind, before, after}], nodes and values with other names only.
    texts: how many nodes differ in doc strings or metadata only.
    same_nodes, same_tensors: how many nodes and constants are in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from tiered.cli.bounded import MemoryBound
from tiered.cli.files import check_input
from tiered.cli.line.declaration import Flags
from tiered.cli.output.tables import print_table
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shared_options import Html, Json, Names, Verbose
from tiered.support.amounts import counted
from tiered.support.errors import TargetError, UsageError, did_you_mean
from tiered.support.records import Record

if TYPE_CHECKING:
    from rich.console import Console

    from tiered.extensions.differences.model_difference import Difference

FEW: Final = 10
"""Rows of a table without -v."""
_LONGEST: Final = 60
"""Characters of a cell without -v."""


class DiffOptions(Record):
    """The options of `tiered diff`."""

    exit_code: bool = False
    """Exit code 4 if the models differ, as for git diff."""
    ignore: Names = ()
    """What does not count for --exit-code: properties, interface, functions, constants, nodes,
    names, texts. Repeatable."""
    html: Html = None
    """Write a page, with the nodes of each place before and after, side by side."""
    json: Json = False
    verbose: Verbose = False
    """Print all rows."""


def diff(
    first: Annotated[str, Flags("A")],
    second: Annotated[str, Flags("B")],
    /,
    *,
    options: DiffOptions,
    bound: MemoryBound,
) -> None:
    """Print what changed between the models of two files.

    Args:
        first: The ONNX file before.
        second: The ONNX file after.

    Raises:
        UsageError: an option is wrong.
        ModelError: a file cannot be read, or the page cannot be written.
        TargetError: with --exit-code, they differ.
    """
    check_input(first)
    check_input(second)
    with Progress(enabled=not options.json) as progress:
        progress.say(f"reading {printable(first)} and {printable(second)}")
        from tiered.extensions.differences.model_diff import diff as difference_of
        from tiered.extensions.differences.model_difference import PARTS

        ignored = [part.strip() for entry in options.ignore for part in entry.split(",")]
        for part in ignored:
            if part not in PARTS:
                hint = did_you_mean(part, PARTS) or f"; there are {', '.join(PARTS)}"
                raise UsageError(f"--ignore: no part {part!r}{hint}")
        found = difference_of(first, second)
    if options.html is not None:
        from tiered.extensions.differences.difference_page import difference_page
        from tiered.support.pages.render import write_page

        write_page(options.html, difference_page(found))
    if options.json:
        print_json(found.to_dict())
    else:
        _print(results(), found, None if options.verbose else FEW)
    left = found.differs_in(ignored)
    if options.exit_code and left:
        raise TargetError(f"{printable(first)} and {printable(second)} differ in {', '.join(left)}")


def _print(console: Console, found: Difference, limit: int | None) -> None:
    from tiered.extensions.differences.difference_page import table_rows

    for title, headers, rows, totals in table_rows(found):
        shown = [
            [_cut(cell) if isinstance(cell, str) and limit else cell for cell in row]
            for row in rows
        ]
        print_table(console, title, headers, shown, totals, limit=limit)
    if not found.is_same:
        console.print()
        console.print(
            f"in both: {counted(found.same_nodes, 'node')}, "
            f"{counted(found.same_tensors, 'constant')}",
            soft_wrap=True,
        )
    console.print(printable(str(found)), soft_wrap=True)


def _cut(cell: str) -> str:
    """Return the end of a long name, where names differ, or the start of a long list."""
    if len(cell) <= _LONGEST:
        return cell
    is_list = ", " in cell
    return f"{cell[: _LONGEST - 1]}…" if is_list else f"…{cell[1 - _LONGEST :]}"
