"""Conversion of a model: solve each region, and write its solution."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable
from functools import partial

from tiered.analysis.layout.cost import transpose_cost
from tiered.analysis.layout.equivalence import TensorClass, is_live
from tiered.analysis.layout.layout_region import Assignment, LayoutRegion, regions
from tiered.analysis.layout.nhwc import (
    DesiredLayouts,
    OnSkip,
    Supports,
    checked_layouts,
    layout_wanted,
    standard_only,
)
from tiered.analysis.layout.permutation import Permutation
from tiered.analysis.layout.reach import Reach, open_graphs, transposes
from tiered.analysis.layout.search_memory import Solutions, memory_of, parts_of
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.graph import DataType, Model, Node, Value
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.rewriter import Skip

LAW = "operators in the orders of axes that take the least time"

ONE_VIEW = "a Transpose of what is there in this order  =>  what is there"


def reach_of(
    model: Model,
    wanted: DesiredLayouts | None = None,
    supports: Supports = standard_only,
    without: Container[Value] = (),
) -> Reach:
    """Return the tensors and operators that a permutation may reach from the Transposes of a model.

    Args:
        model: the model.
        wanted: operators that the user asks for in another layout; the search starts there too.
        supports: returns whether the target has an operator that is not in ONNX.
        without: Transposes of these values are left out.
    """
    reach = Reach(model, wanted, supports)
    graphs = list(open_graphs(model))
    if wanted and "NHWC" in wanted.values():
        nodes = [node for graph in graphs for node in graph.nodes]
        named = [node for node in nodes if layout_wanted(node, wanted) == "NHWC"]
        reach.search([start for node in named for start in reach.wanted_starts(node)])
    outputs = [node.output for graph in graphs for node in transposes(graph)]
    _search_from(reach, [value for value in outputs if value not in without])
    return reach


def _search_from(reach: Reach, values: Iterable[Value]) -> None:
    """Search from all orders that the tensors of some values have."""
    found = [reach.tensor_of(value) for value in values]
    tensors = [tensor for tensor in dict.fromkeys(found) if tensor is not None]
    reach.search((tensor, view) for tensor in tensors for view in tensor.views.values())


def _is_transposed(value: Value) -> bool:
    return value.producer is not None and value.producer.perm is not None


def place_transposes(
    model: Model,
    sizes: LayoutSizes,
    on_skip: OnSkip,
    desired_layouts: DesiredLayouts | None = None,
    *,
    supports: Supports = standard_only,
    on_change: Callable[[str], None] | None = None,
) -> None:
    """Write each region of a model in the axis orders that take the least time.

    Args:
        model: edited in place.
        sizes: the sizes of dynamic dims.
        on_skip: called for operators that cannot be written in another order.
        desired_layouts: NHWC or NCHW by operator, or by `Operator@glob of node names`.
        supports: returns whether the target has an operator: `backend.supports`.
        on_change: called for inputs and outputs that get another layout; None: all keep theirs.

    Raises:
        UsageError: a layout is neither NCHW nor NHWC.
    """
    wanted = checked_layouts(model, desired_layouts or {}, on_skip)
    if on_change is not None:
        from tiered.analysis.layout.interface_layouts import convert_interface

        for change in convert_interface(model, wanted, supports):
            on_change(change)

    def find_reach() -> Reach:
        return reach_of(model, wanted, supports)

    solutions: Solutions = {}

    def optimize(reach: Reach) -> None:
        while _write_regions(reach, sizes, on_skip, solutions):
            reach = find_reach()

    has_bodies = any(graph.parent_node is not None for graph in open_graphs(model))
    if not has_bodies and "NHWC" not in wanted.values():
        _place_again(model, sizes, on_skip, wanted, supports)
        return
    reach = find_reach()
    optimize(reach)
    if reach.tensors and has_bodies:
        # Few models have bodies: the module is loaded for these only.
        from tiered.analysis.layout.body_permutation import BodyConversion

        cost_of = partial(transpose_cost, sizes=sizes)
        BodyConversion(model, find_reach, optimize, cost_of).run()


def _place_again(
    model: Model,
    sizes: LayoutSizes,
    on_skip: OnSkip,
    wanted: DesiredLayouts,
    supports: Supports,
) -> None:
    """Solve all that edits touched since the last time, until nothing is left to write."""
    options = sizes.default, tuple(sorted(sizes.known.items())), tuple(sorted(wanted.items()))
    with memory_of(model, options) as memory:
        is_written = True
        while is_written:
            moment, kept = model.journal.stamp(), memory.untouched(model)
            reach = reach_of(model, wanted, supports, kept)
            while met := {kept[value] for value in reach.tensors if value in kept}:
                again = [value for value, part in kept.items() if part in met]
                kept = {value: part for value, part in kept.items() if part not in met}
                _search_from(reach, filter(_is_transposed, again))
            searched = parts_of(reach)
            is_written = _write_regions(reach, sizes, on_skip, memory.solutions)
            memory.note(moment, kept, searched)


def _write_regions(reach: Reach, sizes: LayoutSizes, on_skip: OnSkip, solutions: Solutions) -> bool:
    """Solve and write each region; return whether any was written: a further one may be better.

    Each solution that is written lowers the cost, so repeated runs terminate. The solutions of the
    runs before are used for regions that are equal.
    """
    if not reach.tensors:
        return False
    for tensor in dict.fromkeys(reach.tensors.values()):
        if len(tensor.views) > 1:
            _merge_views(tensor)
    found = regions(reach, sizes)
    first = next(found, None)
    if first is None:
        return False
    # In many models no region is left to solve.
    from tiered.analysis.layout.apply import positions
    from tiered.analysis.layout.solve import solve

    places: dict[Node, int] = {}
    is_written = False
    for region in itertools.chain((first,), found):
        assignment = solve(region, solutions)
        if any(assignment.values()):
            # Computed once, before the first region is written.
            places = places or positions(reach.model)
            is_written |= _write(region, assignment, places, on_skip)
    return is_written


def _merge_views(tensor: TensorClass) -> None:
    """Keep one live value per order of a tensor; redirect readers of the others."""
    first: dict[Permutation, Value] = {}
    for view, order in list(tensor.views.items()):
        if not is_live(view):
            continue
        if order not in first or not is_live(first[order]):
            first[order] = view
        kept, node = first[order], view.producer
        if kept is view or node is None or not view.owner.sees(kept):
            continue
        dtype = view.dtype
        if view.is_graph_output and dtype is not None and not DataType(dtype).has_identity:
            continue  # no runtime runs the Identity that would take its place
        graph = view.owner
        with graph.rewrite(ONE_VIEW, node):
            graph.replace(node, [kept])
        tensor.trace()


def _write(
    region: LayoutRegion, assignment: Assignment, places: dict[Node, int], on_skip: OnSkip
) -> bool:
    """Write a region; return whether it could be written."""
    from tiered.analysis.layout.apply import Writer

    model, anchor = region.reach.model, region.operators[0].node
    mark = model.mark()
    try:
        with anchor.owner.rewrite(LAW, anchor):
            Writer(region, assignment, places).write()
    except NoEquivalentForm as error:
        model.undo_to(mark)
        on_skip(anchor, Skip("{}", str(error)))
        return False
    return True
