"""Diff: what each pass changed, as a unified diff of the changed nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tiered.graph.core.edit import Edit, Entry
from tiered.pipeline.instruments.print_ir import to_stderr
from tiered.pipeline.instruments.selected_passes import Which, chooser
from tiered.pipeline.instruments.stacks import Stacks
from tiered.pipeline.instruments.tracing.changes import Rewind

if TYPE_CHECKING:
    from tiered.graph import Model, Node
    from tiered.passes.interface.pass_info import PassInfo

_SAID = {
    Edit.SET_CONSTANT: "the numbers of a weight",
    Edit.SET_GRAPH_INPUTS: "the inputs",
    Edit.SET_GRAPH_OUTPUTS: "the outputs",
    Edit.EXCHANGE_GRAPH_OUTPUT: "the outputs",
    Edit.ADD_FUNCTION: "a new function",
    Edit.REMOVE_FUNCTION: "a function less",
    Edit.SET_OPSET: "the imported opsets",
    Edit.SET_IR_VERSION: "the IR version",
    Edit.MOVE_NODE: "the graph of a node",
    Edit.MOVE_CONSTANT: "the graph of a weight",
    Edit.SET_ORDER: "the order of the nodes",
    Edit.SET_SKELETON: "metadata or doc strings",
}
"""Edits without effect on the text of any node."""


class Diff:
    """Prints what each pass changed; nothing for those that changed no node and no weight.

    Args:
        passes: the passes to show: True for all, or names and globs.
        write: takes each diff; stderr by default.

    Raises:
        PassNotFoundError: an unknown name, or a glob that fits no pass.
    """

    def __init__(
        self, passes: Which = True, *, write: Callable[[str], object] | None = None
    ) -> None:
        self._wants = chooser(passes, "passes")
        self._write = write or to_stderr
        self._begun: Stacks[int] = Stacks()

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        self._begun.push(model, model.mark())

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        mark = self._begun.pop(model)
        if info.kind == "pipeline" or not self._wants(info):
            return
        lines = list(diff_lines(model.journal.since(mark)))
        if lines:
            head = (f"--- before {info.name}", f"+++ after {info.name}", f"@@ {model.label} @@")
            self._write("\n".join((*head, *lines)) + "\n")

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        self._begun.pop(model)


def diff_lines(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the lines of a diff of the newest entries of a journal."""
    yield from _node_lines(entries)
    yield from _constant_lines(entries)
    others = dict.fromkeys(_SAID[entry[0]] for entry in entries if entry[0] in _SAID)
    if others:
        yield f" // changed too: {', '.join(others)}"


def _node_lines(entries: Sequence[Entry]) -> Iterator[str]:
    changed = sorted(Rewind(entries).texts(), key=lambda row: row[0].id)
    places = _places(node for node, _, _ in changed)
    groups: dict[int, list[tuple[str, str]]] = {}
    for node, before, after in changed:
        groups.setdefault(places[node], []).append((before, after))
    for _, group in sorted(groups.items()):
        yield from (f"-{before}" for before, _ in group if before)
        yield from (f"+{after}" for _, after in group if after)


def _places(nodes: Iterable[Node]) -> dict[Node, int]:
    """Return the position of each node in the diff: a new one beside the one of its old name."""
    places: dict[Node, int] = {}
    known: dict[str, int] = {}
    for node in nodes:
        names = [node.label, *(value.name for value in node.outputs if value is not None)]
        near = [known[name] for name in names if name in known]
        place = near[0] if near else node.id
        places[node] = place
        for name in names:
            known.setdefault(name, place)
    return places


def _constant_lines(entries: Sequence[Entry]) -> Iterator[str]:
    there: dict[object, tuple[int, str]] = {}
    for entry in entries:
        if entry[0] in (Edit.ADD_CONSTANT, Edit.REMOVE_CONSTANT, Edit.FOLD_TO_INITIALIZER):
            value = entry[3] if entry[0] is Edit.FOLD_TO_INITIALIZER else entry[1]
            sign = -1 if entry[0] is Edit.REMOVE_CONSTANT else 1
            count, _ = there.get(value, (0, ""))
            there[value] = count + sign, f"<{value.type or ''} {value.name}>"
    yield from (f"-{text}" for count, text in there.values() if count < 0)
    yield from (f"+{text}" for count, text in there.values() if count > 0)
