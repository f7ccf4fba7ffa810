"""Conversion of a model: its regions one after the other, each as its placement says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tiered.graph import Model, Node, Value
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.layout.apply import Writer, positions
from tiered.layout.cost import LayoutSizes
from tiered.layout.equivalence import Operator, Wire, is_live
from tiered.layout.nhwc import (
    Say,
    Supports,
    Wanted,
    checked_layouts,
    layout_wanted,
    no_kernels,
)
from tiered.layout.permutation import Permutation
from tiered.layout.reach import Wiring, open_graphs, transposes
from tiered.layout.region import Region, State, regions
from tiered.layout.solve import Known
from tiered.layout.solve import place as placed
from tiered.rewriter import Skip

LAW = "operators in the order of axes in which the fewest bytes are moved"

ONE_VIEW = "a Transpose of what is there in this order  =>  what is there"


def wiring_of(
    model: Model, wanted: Wanted | None = None, supports: Supports = no_kernels
) -> Wiring:
    """Return the wires around all Transposes of a model, and the operators that these may pass.

    Args:
        model: the model.
        wanted: operators that the user wants in another layout; the search begins there too.
        supports: tells which operators of its own the target has.
    """
    wiring = Wiring(model, wanted, supports)
    graphs = list(open_graphs(model))
    if wanted and "NHWC" in wanted.values():
        nodes = [node for graph in graphs for node in graph.nodes]
        named = [node for node in nodes if layout_wanted(node, wanted) == "NHWC"]
        wiring.search([start for node in named for start in wiring.wanted_starts(node)])
    found = [wiring.wire_of(node.output) for graph in graphs for node in transposes(graph)]
    wires = [wire for wire in dict.fromkeys(found) if wire is not None]
    wiring.search((wire, view) for wire in wires for view in wire.views.values())
    return wiring


def place_transposes(
    model: Model,
    sizes: LayoutSizes,
    say: Say,
    desired_layouts: Wanted | None = None,
    *,
    supports: Supports = no_kernels,
    tell: Callable[[str], None] | None = None,
) -> None:
    """Write each region of a model in the orders in which the fewest bytes are moved.

    Args:
        model: edited in place.
        sizes: what dynamic dims count.
        say: is told of operators that the model cannot have in another order.
        desired_layouts: NHWC or NCHW by operator, or by `Operator@glob of node names`.
        supports: tells which operators of its own the target has: `backend.supports`.
        tell: is told of inputs and outputs that get another layout; without it, all keep theirs.

    Raises:
        UsageError: there is no such layout.
    """
    wanted = checked_layouts(model, desired_layouts or {}, say)
    if tell is not None:
        from tiered.layout.interface import convert_interface

        for said in convert_interface(model, wanted, supports):
            tell(said)

    def wire() -> Wiring:
        return wiring_of(model, wanted, supports)

    def place(wiring: Wiring) -> None:
        while _place(wiring, sizes, say):
            wiring = wire()

    wiring = wire()
    place(wiring)
    if wiring.wires and any(graph.owner is not None for graph in open_graphs(model)):
        # Few models have bodies: what turns their borders is loaded for those.
        from tiered.layout.bodies import Turning
        from tiered.layout.counting import transposing

        Turning(model, wire, place, lambda wiring: transposing(wiring, sizes)).run()


def _place(wiring: Wiring, sizes: LayoutSizes, say: Say) -> bool:
    """Write each region of a wiring as its placement says.

    Return whether an operator was written that another placement may improve. The cost decreases
    with each placement that is written, so that this ends.
    """
    if not wiring.wires:
        return False
    for wire in dict.fromkeys(wiring.wires.values()):
        _merge_views(wire)
    places: dict[Node, int] = {}
    known, is_stepwise = Known(), False
    for region in regions(wiring, sizes):
        state = placed(region, known)
        if any(state.values()):
            # Asked for before anything is written, and only then.
            places = places or positions(wiring.model)
            written = _write(region, state, places, say)
            is_stepwise |= any(operator.passage.is_stepwise for operator in written)
    return is_stepwise


def _merge_views(wire: Wire) -> None:
    """Leave one value of each order of a wire, and what nobody read not even that."""
    first: dict[Permutation, Value] = {}
    for view, order in list(wire.views.items()):
        if not is_live(view):
            continue
        if order not in first or not is_live(first[order]):
            first[order] = view
        kept, node = first[order], view.producer
        if kept is view or node is None or not view.owner.sees(kept):
            continue
        graph = view.owner
        with graph.rewrite(ONE_VIEW, node):
            graph.replace(node, [kept])
        wire.trace()


def _write(
    region: Region, state: State, places: dict[Node, int], say: Say
) -> Sequence[Operator]:
    """Write a region; return the operators that are in another order now."""
    model, anchor = region.wiring.model, region.operators[0].node
    mark = model.mark()
    try:
        with anchor.owner.rewrite(LAW, anchor):
            Writer(region, state, places).write()
    except NoEquivalentForm as error:
        model.undo_to(mark)
        say(anchor, Skip("{}", str(error)))
        return ()
    return [operator for operator in region.operators if state[operator]]
