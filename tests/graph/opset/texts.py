"""Texts of models at an opset, for the tests of conversions."""

from tiered.graph import Model, Tensor
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.graph.opset.conversion import form_between
from tiered.testing import parse

X = "(float[2,3] x) => (float[N,M] y) "
IMAGE = "(float[1,2,4,4] x) => (float[1,2,H,W] y) "


def at(opset: int, text: str, ir: int = 10) -> str:
    """Return the text of a model with its header."""
    return f'<ir_version: {ir}, opset_import: ["" : {opset}]> g {text}'


def form_text(stock: str, call: str, before: int, after: int) -> str:
    """Return the form of a call at another opset as text, or why it has none.

    Args:
        stock: the inputs, outputs and initializers of a model, and its nodes before the call.
        call: its outputs, operator and operands.
        before: the opset of the model.
        after: the other opset.
    """
    header = f'<ir_version: 8, opset_import: ["": {before}, "vendor": 1]> g'
    graph = Model.from_proto(parse(f"{header} {stock} {call} last = vendor.F() }}")).main
    try:
        form = form_between(graph.nodes[-2], before, after)
    except NoEquivalentForm as error:
        return str(error)
    if form is None:
        return "as it is"
    reads = [
        "-"
        if each is None
        else str(each.default.numpy().tolist())
        if each.graph is None and each.default
        else each.name
        for each in form.operands
    ]
    attributes = {
        name: value.numpy().tolist() if isinstance(value, Tensor) else value
        for name, value in form.attributes.items()
    }
    return f"{form.op_type} {attributes} {' '.join(reads)}"
