"""A call of a local function  =>  the body of the function"""

from collections import Counter, deque
from typing import Final

from tiered import Function, Graph, Model, Node, PassContext, Skip, Value, module_pass

KEEP: Final = frozenset({"tiered.compiler", "tiered.keep", "tiered.skip_optimization"})
"""Metadata of a function, or of a call, that must stay what it is."""

Id = tuple[str, str, str]


@module_pass(
    opt_level=1, followed_by=("remove_unused_functions", "remove_unused_opsets"), acts_on=("*",)
)
def inline(
    model: Model,
    ctx: PassContext,
    *,
    once: bool = False,
    max_nodes: int = 200_000,
    domains: tuple[str, ...] = (),
) -> None:
    """Put the bodies of local functions in the place of their calls, and of the calls in them.

    Names tell where a node comes from: `call/node`. Attribute references become what the call
    gives, else the default of the function, else they go; optional inputs that the call leaves out
    are absent inside. A function that is marked to be kept is left alone.

    Args:
        once: only functions that are called from one place.
        max_nodes: if the model would have more nodes than this, no call is inlined: functions that
            call each other twice in a row double with each of them.
        domains: domains whose functions are inlined although they are marked to be kept.
    """
    functions = {function.id: function for function in model.functions}
    if not functions:
        return
    kept = _kept(model, once, domains)
    size = model.expanded_size(kept)
    if size > max_nodes:
        too_many = Skip("inlining would make {} nodes, more than max_nodes={}", size, max_nodes)
        kept = {callee: kept.get(callee, too_many) for callee in functions}
    work = _Inliner(ctx, functions, kept)
    work.visit(model.main)
    for function in model.functions:
        # What is called still has calls of its own.
        if function.id in kept and size <= max_nodes:
            work.visit(function)


def _kept(model: Model, once: bool, domains: tuple[str, ...]) -> dict[Id, Skip]:
    """Return the functions whose calls stay, and why."""
    # Only what the main graph does not reach can do so.
    kept = {callee: Skip("the function calls itself") for callee in model.recursive_functions()}
    sites = Counter(node.callee for graph in model.graphs() for node in graph.nodes)
    for function in model.functions:
        marks = KEEP & {entry.key for entry in function.skeleton.metadata_props}
        is_marked = bool(marks) or f"{function.domain}.".startswith("tiered.")
        if is_marked and function.domain not in domains:
            kept[function.id] = Skip("the function is marked to be kept")
        elif once and sites[function.id] > 1:
            kept[function.id] = Skip("the function is called from more than one place")
    return kept


class _Inliner:
    def __init__(
        self, ctx: PassContext, functions: dict[Id, Function], kept: dict[Id, Skip]
    ) -> None:
        self.ctx = ctx
        self.functions = functions
        self.kept = kept
        self.shared: dict[tuple[Node, Graph], Value] = {}
        self._opsets: dict[tuple[Id, Graph], Skip | None] = {}

    def visit(self, root: Graph) -> None:
        """Inline the calls in a graph and below it, then those that this brings in."""
        pending = deque(root.walk())
        while pending:
            node = pending.popleft()
            function = self.functions.get(node.callee)
            if function is None or not node.is_live:
                continue
            if reason := self._refusal(node, function):
                self.ctx.skip(node, reason)
                continue
            graph, copies = node.owner, []
            with graph.rewrite("a call of a local function => its body", node):
                copies = graph.inline_call(node, function, self.shared)
            for copy in copies:
                if copy.is_live:
                    pending.append(copy)
                    pending.extend(inner for body in copy.bodies for inner in body.walk())

    def _refusal(self, node: Node, function: Function) -> Skip | None:
        """Return why a call is left alone."""
        if function.id in self.kept:
            return self.kept[function.id]
        if KEEP & node.metadata.keys():
            return Skip("the call is marked to be kept")
        if node.schema is not None:
            return Skip("a standard operator has the name: which is meant, runtimes decide")
        if node.bodies:
            return Skip("an attribute of the call is a graph")
        passed_on = [proto.name for proto in node.proto.attribute if proto.ref_attr_name]
        if not function.defaults.keys().isdisjoint(passed_on):
            return Skip("what the caller may leave out has a default in the function")
        for at, value in enumerate(function.inputs):
            if node.input(at) is None and value.is_graph_output:
                return Skip("an output of the function is an input that the call leaves out")
        key = (function.id, node.owner.root)
        if key not in self._opsets:
            self._opsets[key] = self._disagreement(function, node.owner.root)
        return self._opsets[key]

    def _disagreement(self, function: Function, root: Graph) -> Skip | None:
        """Return which operator is another one at the opset of the caller."""
        for node in function.walk():
            own, there = function.opset(node.domain), root.opset(node.domain)
            if there and node.callee not in self.functions and not node.is_same_at(there):
                return Skip("{} differs between opsets {} and {}", node.op_type, own, there)
        return None
