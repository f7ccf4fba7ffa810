"""What is known of the values of a model, beside the lines that compute them."""

import re
from collections.abc import Iterator

from tests.small import parsed
from tiered.graph import Node, Value
from tiered.graph.shape_inference.symbolic_dims import Element, is_invented


def known_of(header: str, below: list[str]) -> Iterator[str]:
    """Yield the lines of an entry: those of a model, and below each what is known of its outputs.

    The first line has the inputs, outputs and constants, each other one a node. A `?` is a dim or
    an element that is not known.

    Args:
        header: the opset.
        below: the lines that are there.
    """
    stock, *lines = (line for line in below if line and not line.startswith("  "))
    model = parsed(f"{stock} {{ {' '.join(lines)} }}", opset=int(header))
    model.refresh_types()
    yield stock
    for line, node in zip(lines, model.main.nodes, strict=True):
        yield line
        yield from _outputs(node)
    yield ""


def _outputs(node: Node) -> Iterator[str]:
    yield f"  {', '.join(known(value) for value in node.outputs if value is not None)}"
    for body in node.bodies:
        yield f"  {body.name} of {', '.join(map(known, body.inputs)) or 'nothing'}"
        for inner in body.nodes:
            yield from _outputs(inner)


def known(value: Value) -> str:
    """Return the type of a value, and its elements."""
    kind = str(value.type)
    if value.shape is not None:
        dims = ["?" if is_invented(dim) or dim is None else str(dim) for dim in value.shape]
        kind = f"{kind.partition('[')[0]}[{','.join(dims)}]"
    elements = value.elements
    if elements is not None:
        kind += f" = {', '.join(map(_element, elements.ravel()))}"
    return kind


def _element(element: Element) -> str:
    """Return an element as text; the names that inference invents are all `#`."""
    return "?" if element is None else re.sub(r"unk__\.?\d+", "#", str(element))


def inferred_of(header: str, below: list[str]) -> Iterator[str]:
    """Yield the lines of a model, then what is known of all values of each of its graphs.

    Args:
        header: the opset, and `asked` where nothing is inferred before it is asked for.
        below: the lines that are there.
    """
    lines = [line for line in below if line and not line.startswith("  ")]
    opset, _, way = header.partition(" ")
    model = parsed(" ".join(lines), opset=int(opset))
    if not way:
        model.refresh_types()
    yield from lines
    for graph in model.graphs():
        yield f"  {graph.name}: {', '.join(map(_named, graph.values.values()))}"
    yield f"  {'; '.join(model.notes)}"
    yield ""


def _named(value: Value) -> str:
    return f"{value.name} {known(value)}"
