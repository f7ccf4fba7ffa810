"""What a pass makes of its example: the nodes before and after, as data of a diagram."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import onnx

from docs.site.examples import Example
from tiered.context import PassContext
from tiered.graph import Model
from tiered.instruments.onnx_text import model_text, node_text
from tiered.instruments.run_page.rewrites import rewrites_data
from tiered.instruments.tracing.changes import Change, NodeState, state_of
from tiered.instruments.tracing.events import Rewrite
from tiered.instruments.tracing.surroundings import Surroundings, ValueState
from tiered.passes import PassInfo, get_pass


class Picture(NamedTuple):
    """A model before and after a pass.

    Attributes:
        before, after: the models as text.
        data: of the diagrams, as `drawDiagram` of the pages takes it.
    """

    before: str
    after: str
    data: Mapping[str, Any]


def picture_of(info: PassInfo, example: Example) -> Picture:
    """Return the picture of an example.

    Raises:
        ValueError: the pass does nothing to its example.
    """
    source = onnx.ModelProto()
    source.CopyFrom(example.before)
    model = Model.from_proto(source)
    was, types = _states(model), _types(model)
    text = model_text(model)
    context = PassContext.isolated(opt_level=4, backend=example.backend)
    get_pass(info.name, **example.options).apply(model, context)
    after = model_text(model)
    if text == after:
        raise ValueError(f"{info.name} does nothing to the example of {example.file}")
    now = _states(model)
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
        around=Surroundings(near, _types(model) | types),
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
