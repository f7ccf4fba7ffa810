"""What a pass makes of its example: the nodes before and after, as data of a diagram."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import onnx

from docs.site.examples import Example
from docs.site.model_files import file_text
from tiered.context import PassContext
from tiered.graph import Model
from tiered.passes import PassInfo
from tiered.pipeline import get_pass
from tiered.pipeline.instruments.onnx_text import node_text
from tiered.pipeline.instruments.run_page.rewrites import rewrites_data
from tiered.pipeline.instruments.tracing.changes import Change, NodeState, state_of
from tiered.pipeline.instruments.tracing.events import Rewrite
from tiered.pipeline.instruments.tracing.surroundings import Surroundings, ValueState


class Picture(NamedTuple):
    """A model before and after a pass.

    Attributes:
        before, after: the models as text.
        data: of the diagrams, as `drawDiagram` of the pages takes it.
    """

    before: str
    after: str
    data: Mapping[str, Any]

    @property
    def has_nodes(self) -> bool:
        """Whether the pass changes a node, so that the diagrams show something."""
        return any(self.data["rewrites"][0][6:8])

    @property
    def diff(self) -> list[str]:
        """The lines of both models, each after `-`, `+` or a space."""
        before, after = self.before.splitlines(), self.after.splitlines()
        lines = unified_diff(before, after, lineterm="", n=len(before))
        return list(lines)[3:]  # the rest are its headers


def picture_of(info: PassInfo, example: Example) -> Picture:
    """Return the picture of an example.

    Raises:
        ValueError: the pass does nothing to its example.
    """
    with TemporaryDirectory() as folder:
        return _picture_in(Path(folder), info, example)


def _picture_in(folder: Path, info: PassInfo, example: Example) -> Picture:
    """Return the picture of an example; its files are written to the folder."""
    for name, beside in example.beside.items():
        onnx.save(beside, folder / name)
    options = {
        name: str(folder / value) if isinstance(value, str) and value in example.beside else value
        for name, value in example.options.items()
    }
    source = onnx.ModelProto()
    source.CopyFrom(example.before)
    Model.from_proto(source).save(folder / "before.onnx", storage=example.storage)
    model = Model.load(folder / "before.onnx")
    was, types = _states(model), _types(model)
    context = PassContext.isolated(opt_level=4, backend=example.backend)
    get_pass(info.name, **options).apply(model, context)
    now, types = _states(model), _types(model) | types
    model.save(folder / "after.onnx")
    text, after = file_text(folder / "before.onnx"), file_text(folder / "after.onnx")
    if text == after:
        raise ValueError(f"{info.name} does nothing to the example of {example.file}")
    kept = {serial for serial, seen in now.items() if was.get(serial) == seen}
    changes = [
        Change(_state(was.get(serial)), _state(now.get(serial)))
        for serial in sorted({*was, *now} - kept)
    ]
    near = tuple(now[serial][0] for serial in sorted(kept))
    rewrite = Rewrite(
        number=1,
        pass_name=info.name,
        law=info.law,
        graph="",
        anchor="",
        changes=tuple(changes),
        added=(),
        removed=(),
        at=0.0,
        around=Surroundings(near, types),
    )
    return Picture(text, after, rewrites_data([rewrite], {}))


Seen = tuple[NodeState, str]
"""A node at one moment, and its text, which has the attributes too."""


def _states(model: Model) -> dict[int, Seen]:
    nodes = (node for graph in model.graphs() for node in graph.nodes)
    return {node.id: (state_of(node), node_text(node)) for node in nodes}


def _state(seen: Seen | None) -> NodeState | None:
    return None if seen is None else seen[0]


def _types(model: Model) -> dict[str, ValueState]:
    """Return the type of each value by its name."""
    found: dict[str, ValueState] = {}
    for graph in model.graphs():
        made = (value for node in graph.nodes for value in node.outputs if value is not None)
        for value in (*graph.inputs, *graph.initializers, *made):
            found[value.name] = ValueState(value.type, value.is_constant)
    return found
