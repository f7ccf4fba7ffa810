"""Quant, BipolarQuant, Trunc, MultiThreshold  =>  the same, with a local function as definition"""

from collections import Counter

from tiered import Model, Node, PassContext, Skip, module_pass
from tiered.rewriter.idioms.qonnx_bodies import DEFAULTS, DOMAINS, BodyForm, form_of


@module_pass(
    opt_level=None,
    conflicts=("inline",),
    matches=tuple(f"{domain}::{name}" for domain in DOMAINS for name in DEFAULTS),
)
def import_qonnx(model: Model, ctx: PassContext) -> None:
    """Define the operators of QONNX by local functions, so that any runtime computes them.

    The nodes stay as they are, with their absent attributes written down. A function has one
    rounding mode or data layout; nodes with a rarer one call a function with another name.
    `inline` then makes standard nodes of the calls.
    """
    for domain in DOMAINS:
        for op_type in DEFAULTS:
            nodes = [node for graph in model.graphs() for node in graph.nodes_of(op_type, domain)]
            if nodes:
                _define(model, ctx, nodes)


def _define(model: Model, ctx: PassContext, nodes: list[Node]) -> None:
    """Define the operator of nodes for all of them; for none if there is one that has no body."""
    domain, op_type = nodes[0].domain, nodes[0].op_type
    forms: dict[Node, BodyForm] = {}
    is_complete = True
    for node in nodes:
        found = _why_not_in(model, node) or form_of(node)
        if isinstance(found, Skip):
            ctx.skip(node, found)
            is_complete = False
        else:
            forms[node] = found
    if not is_complete:
        for node in forms:
            ctx.skip(node, Skip("another node of the operator is declined"))
        return
    counts = Counter(forms.values())
    first = min(counts, key=lambda form: (-counts[form], form))
    names = {form: op_type if form == first else form.name for form in sorted(counts)}
    for name in names.values():
        if model.function(domain, name) is not None:
            ctx.skip(nodes[0], Skip("the model has a function {}", name))
            return
    for form, name in names.items():
        calls = [node for node in nodes if forms[node] == form]
        with calls[0].owner.rewrite("an operator => a call of its function", calls[0]):
            model.add(form.function(domain, name, model.opset()))
            for node in calls:
                _call(node, name)


def _call(node: Node, name: str) -> None:
    """Make a node the call of a function, with all attributes."""
    graph = node.owner
    for key, default in DEFAULTS[node.op_type].items():
        if not node.has_attr(key):
            graph.set_attribute(node, key, default)
    graph.set_operator(node, name, node.domain)


def _why_not_in(model: Model, node: Node) -> Skip | None:
    if model.function(node.domain, node.op_type) is not None:
        return Skip("the model defines the operator")
    if model.ir_version < 8:
        return Skip("before IR 8 there are no local functions")
    if model.opset() < 13:
        return Skip("the opset is below 13")
    return None
