"""A finding as text: a model for a test, and the skeleton of a pass that does what was found."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import onnx
from onnx import parser

from tiered.extensions.discovery.expressions import BORDER, Array, GrammarExpr, outputs_of
from tiered.support.errors import ModelError, words_of

_HEADER: Final = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>\ng '


def model_text(expr: GrammarExpr, whole: GrammarExpr) -> str:
    """Return an expression as a model in the text format of ONNX, without a header.

    Args:
        expr: what the model computes, as y.
        whole: its borders are the inputs.
    """
    borders = [each for each in whole.walk() if each.op == BORDER]
    inputs = ", ".join(f"{_type(each)} {each}" for each in borders)
    names: dict[int, str] = {each.number: str(each) for each in borders}
    constants: list[str] = []
    nodes: list[str] = []
    for each in expr.walk():
        if each.array is not None:
            names[each.number] = f"c{len(constants)}"
            values = ", ".join(_number(value) for value in each.array.ravel().tolist())
            constants.append(f"{_type(each)} {names[each.number]} = {{{values}}}")
        elif each.is_operator:
            name = names[each.number] = "y" if each is expr else f"h{len(nodes)}"
            nodes.append(_node(each, name, names))
    if not expr.is_operator:
        nodes.append(f"y = Identity({names[expr.number]})")
    held = f" <{', '.join(constants)}>" if constants else ""
    return f"({inputs}) => ({_type(expr)} y){held} {{ {'  '.join(nodes)} }}"


def _type(expr: GrammarExpr) -> str:
    name = onnx.TensorProto.DataType.Name(expr.dtype).lower()
    return name + (f"[{','.join(map(str, expr.shape))}]" if expr.shape else "")


def _number(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else repr(value)


def _node(expr: GrammarExpr, name: str, names: Mapping[int, str]) -> str:
    count = outputs_of(expr)
    outputs = ", ".join(name if at == expr.output else f"{name}_{at}" for at in range(count))
    operands = ", ".join("" if x is None else names[x.number] for x in expr.operands)
    held = ", ".join(f"{key} = {_attribute(value)}" for key, value in expr.attributes)
    op = f"{expr.domain}.{expr.op}" if expr.domain else expr.op
    return f"{outputs} = {op}{f' <{held}>' if held else ''}({operands})"


def _attribute(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_attribute, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


# --- the skeleton of a pass -----------------------------------------------------------------------


def pass_text(name: str, law: str, before: str, after: str) -> str:
    """Return the file of a pass that replaces one graph by another.

    It fires where all constants and attributes are those of the finding: each of its guards is
    there to be widened.

    Raises:
        ModelError: `before` or `after` is no model.
    """
    source, target = (_parsed(text) for text in (before, after))
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in source.initializer}
    inputs = [info.name for info in source.input]
    matched = {name: f"var.{name}" for name in inputs}
    matched |= {name: f'const(name="{name}")' for name in constants}
    pattern = _built(source, "op", matched)
    renamed = _same_constants(source, target)
    values = {name: name for name in inputs} | renamed
    values |= {
        tensor.name: _literal(onnx.numpy_helper.to_array(tensor))
        for tensor in target.initializer if tensor.name not in renamed
    }  # fmt: skip
    body = _built(target, "graph.op", values)
    arguments = [f"{name}: Value" for name in inputs]
    arguments += [f"{name}: Constant" for name in constants]
    guards = "".join(
        f"    same = {_literal(array)}\n"
        f"    if {name}.const.shape != same.shape or {name}.const.tobytes() != same.tobytes():\n"
        f'        return Skip("constant {name} is another one")\n'
        for name, array in constants.items()
    )
    numpy = "import numpy as np\n\n" if "np." in body + guards else ""
    needed = ["Constant", "Skip", "const"] if constants else []
    public = ", ".join(sorted([*needed, "Graph", "Value", "op", "rewrite", "var"], key=_order))
    result = "Value | Skip" if constants else "Value"
    return (
        f'"""{law}"""\n\n{numpy}from tiered import {public}\n\n\n'
        f"@rewrite({pattern}, opt_level=None)\n"
        f"def {name}(graph: Graph, {', '.join(arguments)}) -> {result}:\n"
        f'    """Describe in a sentence why both compute the same, and widen the guards."""\n'
        f"{guards}    return {body}\n"
    )


def _order(name: str) -> tuple[bool, str]:
    return name[0].islower(), name


def proof_text(name: str, before: str, after: str) -> str:
    """Return the file of the test of a pass: it runs both graphs as well."""
    return (
        "from tiered.testing import assert_rewrites\n\n\n"
        "def test_it_does_what_its_law_says() -> None:\n"
        f'    assert_rewrites(\n        "{name}",\n        {before!r},\n        {after!r},\n    )\n'
    )


def _parsed(text: str) -> onnx.GraphProto:
    try:
        return parser.parse_model(_HEADER + text).graph
    except parser.ParseError as error:
        raise ModelError(
            f"a finding is no model in the text format of ONNX: {words_of(error)}"
        ) from error


def _same_constants(source: onnx.GraphProto, target: onnx.GraphProto) -> dict[str, str]:
    """Return the constants of the target that the source has, as values of the match."""
    held = {(t.data_type, *t.dims, bytes(_bytes(t))): t.name for t in source.initializer}
    found = {t.name: held.get((t.data_type, *t.dims, bytes(_bytes(t)))) for t in target.initializer}
    return {name: same for name, same in found.items() if same is not None}


def _bytes(tensor: onnx.TensorProto) -> bytes:
    return onnx.numpy_helper.to_array(tensor).tobytes()


def _literal(array: Array) -> str:
    numbers = re.sub(r"\b(inf|nan)\b", r"np.\1", repr(array.tolist()))
    return f"np.array({numbers}, np.{array.dtype.name})"


def _built(graph: onnx.GraphProto, start: str, values: Mapping[str, str]) -> str:
    """Return the expression that builds or matches a graph."""
    known = dict(values)
    for node in graph.node:
        operands: Sequence[str] = [known[name] if name else "None" for name in node.input]
        held = [f"{each.name}={_value(each)!r}" for each in node.attribute]
        if node.op_type == "Identity":
            known[node.output[0]] = operands[0]
        else:
            known[node.output[0]] = f"{start}.{node.op_type}({', '.join([*operands, *held])})"
    return known[graph.output[0].name]


def _value(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    return list(value) if hasattr(value, "__len__") else value
