"""A call of a local function  =>  the body of the function"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Final

from tiered import (
    Function,
    Graph,
    Model,
    Node,
    PassContext,
    Skip,
    Unable,
    Value,
    module_pass,
)
from tiered.support.amounts import counted
from tiered.support.errors import did_you_mean

KEEP: Final = frozenset({"tiered.compiler", "tiered.keep", "tiered.skip_optimization"})
"""Metadata keys that mark a function or a call as not to be inlined."""

Id = tuple[str, str, str]


@module_pass(
    opt_level=1,
    followed_by=("remove_unused_functions", "remove_unused_opsets"),
    matches=("function",),
    touches=("*",),
)
def inline(
    model: Model,
    ctx: PassContext,
    *,
    once: bool = False,
    max_nodes: int = 200_000,
    domains: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
) -> None:
    """Replace calls of local functions by the functions' bodies, recursively.

    A copied node is named `call/node`. An attribute reference becomes the attribute of the call,
    else the default of the function, else it is removed. An optional input that is absent in the
    call is absent in the body. Functions that are marked to be kept are not inlined.

    Args:
        once: inline only functions with a single call.
        max_nodes: if the model would have more nodes than this, nothing is inlined: with functions
            that each call the next one twice, the size grows exponentially.
        domains: inline the functions of these domains also where they, or calls of them, are
            marked to be kept.
        only: inline the functions of these domains alone; of all domains without it.
    """
    functions = {function.id: function for function in model.functions}
    for text in _unmet_domains(model, (*domains, *only)):
        ctx.skip(None, Unable("{}", text, despite_edits=True))
    if not functions:
        return
    kept = _kept(model, once, domains, only)
    size = model.expanded_size(kept)
    if size > max_nodes:
        made = counted(size, "node")
        too_many = Skip("inlining would make {}, more than max_nodes={}", made, max_nodes)
        kept = {callee: kept.get(callee, too_many) for callee in functions}
    work = _Inliner(ctx, functions, kept, domains)
    work.visit(model.main)
    for function in model.functions:
        # A function that is kept may contain calls itself.
        if function.id in kept and size <= max_nodes:
            work.visit(function)


def _unmet_domains(model: Model, named: Sequence[str]) -> Iterator[str]:
    """Yield, in words, each domain that is named and has no function."""
    there = {function.domain for function in model.functions}
    for domain in named:
        if domain not in there:
            known = f"; it has {', '.join(sorted(there))}" if there else ""
            hint = did_you_mean(domain, there) or known
            yield f"the model has no function of the domain {domain!r}{hint}"


def _kept(
    model: Model, once: bool, domains: tuple[str, ...], only: tuple[str, ...]
) -> dict[Id, Skip]:
    """Return the functions that are not inlined, with the reasons."""
    # A valid model has recursive functions only where the main graph does not reach them.
    kept = {callee: Skip("the function calls itself") for callee in model.recursive_functions()}
    sites = Counter(node.callee for graph in model.graphs() for node in graph.nodes)
    for function in model.functions:
        marks = KEEP & {entry.key for entry in function.skeleton.metadata_props}
        is_marked = bool(marks) or f"{function.domain}.".startswith("tiered.")
        if is_marked and function.domain not in domains:
            kept[function.id] = Skip("the function is marked to be kept")
        elif only and function.domain not in only:
            kept[function.id] = Skip("the domain of the function is not chosen")
        elif once and sites[function.id] > 1:
            kept[function.id] = Skip("the function is called from more than one place")
    return kept


class _Inliner:
    def __init__(
        self,
        ctx: PassContext,
        functions: dict[Id, Function],
        kept: dict[Id, Skip],
        domains: tuple[str, ...],
    ) -> None:
        self.ctx = ctx
        self.domains = domains
        self.functions = functions
        self.kept = kept
        self.shared: dict[tuple[Node, Graph], Value] = {}
        self._opsets: dict[tuple[Id, Graph], Skip | None] = {}

    def visit(self, root: Graph) -> None:
        """Inline the calls in a graph and its bodies, then the calls in the copies."""
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
        """Return why a call is not inlined; None if it can be."""
        if function.id in self.kept:
            return self.kept[function.id]
        if KEEP & node.metadata.keys() and function.domain not in self.domains:
            return Skip("the call is marked to be kept")
        if node.schema is not None:
            return Skip("a standard operator has the same name")
        if node.bodies:
            return Skip("an attribute of the call is a graph")
        passed_on = [proto.name for proto in node.proto.attribute if proto.ref_attr_name]
        if not function.defaults.keys().isdisjoint(passed_on):
            return Skip("an optional attribute has a function default")
        for at, value in enumerate(function.inputs):
            if node.input(at) is None and value.is_graph_output:
                return Skip("an output is an absent input of the call")
        key = (function.id, node.owner.root)
        if key not in self._opsets:
            self._opsets[key] = self._disagreement(function, node.owner.root)
        return self._opsets[key]

    def _disagreement(self, function: Function, root: Graph) -> Skip | None:
        """Return the operator that differs between the opsets of function and caller, if any."""
        for node in function.walk():
            own, there = function.opset(node.domain), root.opset(node.domain)
            if there and node.callee not in self.functions and not node.is_same_at(there):
                return Skip("{} differs between opsets {} and {}", node.op_type, own, there)
        return None
