"""Whether a quantised model stays one for a target that has no quantised tensors.

Floats take four times the bytes of the weights. They are worth it if the target then takes nodes
that compute, which depends on the whole pipeline: so it runs on copies of the model, both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tiered.context import PassContext
from tiered.graph import Model, Node
from tiered.passes.execution import execute
from tiered.passes.interface.pass_info import Place
from tiered.pipeline.pipeline_base import Pipeline
from tiered.support.errors import TieredError
from tiered.targets.coverage import called_function, checked_graphs

if TYPE_CHECKING:
    from tiered.targets import Backend

QUANTIZERS: Final = ("QuantizeLinear", "DequantizeLinear")
LOWERINGS: Final = ("lower_quantized_constant", "lower_qdq_pair")
_OWN: Final = ("trace", "instruments", "rewrite_limit", "on_error", "strict")
"""Settings that are no part of the choice: it is the same one in a run that is watched."""


def choose_form(
    model: Model, pipeline: Pipeline, context: PassContext, settings: Mapping[str, Any]
) -> Pipeline:
    """Return the pipeline, or one that leaves Q and DQ as they are if they cost the target nothing.

    Args:
        model: not changed, but for a note if its integers stay.
        pipeline: that of the backend, with all edits.
        context: the context of the run.
        settings: the arguments of the context.
    """
    if not _is_concerned(model, context):
        return pipeline
    keeping = _without_lowerings(pipeline, context)
    if keeping is None:
        return pipeline
    own = {name: value for name, value in settings.items() if name not in _OWN}
    try:
        in_floats = _computed_on_target(model, pipeline, own)
        if in_floats > _computed_on_target(model, keeping, own):
            return pipeline
    except TieredError:
        return pipeline  # the run itself ends with this error, and says where
    model.note(
        f"{context.backend} has no DequantizeLinear, and takes no more nodes that compute where "
        "floats take the place of the integers: the model stays quantised (`--require legalize` "
        "converts it)"
    )
    return keeping


def _is_concerned(model: Model, context: PassContext) -> bool:
    """Return whether a model has nodes for integers that a named target lacks."""
    if not context.names_backend:
        return False
    return any(
        graph.nodes_of("DequantizeLinear") for graph in model.graphs()
    ) and not context.backend.supports("DequantizeLinear")


def _without_lowerings(pipeline: Pipeline, context: PassContext) -> Pipeline | None:
    """Return a pipeline whose passes leave Q and DQ as they are; None if all do, or one is asked.

    A pass that the context requires by name runs, whatever it costs.
    """
    names = (*LOWERINGS, "legalize")
    found = [step for step in pipeline.plan(context) if step.pass_.name in names and step.decision]
    entries = [entry for each in context.chain for entry in each.required]
    if not found or any(
        entry.selects(step.pass_, step.place) for step in found for entry in entries
    ):
        return None
    for name in dict.fromkeys(step.pass_.name for step in found):
        if name in LOWERINGS:
            pipeline = pipeline.drop(name)
        else:
            pipeline = pipeline.configure(name, leave=QUANTIZERS)
    return pipeline


def _computed_on_target(model: Model, pipeline: Pipeline, settings: Mapping[str, Any]) -> int:
    """Return how many computing nodes of a model a target takes after a pipeline."""
    copy = model.copy()
    computing = {
        node
        for graph in copy.graphs()
        for node in graph.nodes
        if node.domain or node.op_type not in (*QUANTIZERS, "Constant")
    }
    context = PassContext.isolated(**settings)
    with context:
        execute(pipeline, copy, context, Place())
        return len(computing & _taken(copy, context.backend))


def _taken(model: Model, backend: Backend) -> set[Node]:
    """Return the origins of nodes that the target takes, but of no node that it refuses.

    A node next to a Q or DQ that the target refuses does not count: its integers are converted
    elsewhere, before it or after it.
    """
    taken, refused = set[Node](), set[Node]()
    for graph in checked_graphs(model, backend):
        for node in graph.nodes:
            if called_function(node, backend) is None and not node.is_op("Constant"):
                is_taken = backend.takes(node) and not _is_beside_refused(node, backend)
                (taken if is_taken else refused).update(node.origins)
    return taken - refused


def _is_beside_refused(node: Node, backend: Backend) -> bool:
    producers = (value.producer for value in node.inputs if value is not None)
    before = (each for each in producers if each is not None and each.is_op("DequantizeLinear"))
    readers = (reader for value in node.outputs if value is not None for reader in value.readers)
    after = (reader for reader in readers if reader.is_op("QuantizeLinear"))
    return any(not backend.takes(each) for each in (*before, *after))
