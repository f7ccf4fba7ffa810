"""Dims that are written as arithmetic: "past_sequence_length + 1"."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "min": min,
    "max": max,
    "floor": lambda x: x,
    "ceiling": lambda x: x,
}
_MAX_EXPRESSION = 200  # characters; what is longer is no dim that a person or exporter wrote


class Expression:
    """The string of a dim as arithmetic over names: + - * // / % ( ), integers, Min and Max."""

    def __init__(self, text: str) -> None:
        """Parse, raising ValueError for anything else."""
        if len(text) > _MAX_EXPRESSION:
            raise ValueError("too long for a dim")
        try:
            self._body = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(f"{text!r} is not arithmetic") from error
        self.names: tuple[str, ...] = tuple(dict.fromkeys(_names(self._body)))

    def value(self, sizes: Mapping[str, int]) -> int:
        """Return its value; raises KeyError for an unbound name, ValueError for x // 0."""
        try:
            return _evaluate(self._body, sizes)
        except ZeroDivisionError as error:
            raise ValueError("division by zero in a dim") from error


def _names(node: ast.expr) -> list[str]:
    """Return the names in an expression; ValueError if it is more than arithmetic."""
    match node:
        case ast.Name(id=name):
            return [name]
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return []
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _names(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _names(left) + _names(right)
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]):
            if name.lower() in _FUNCTIONS:
                return [n for arg in args for n in _names(arg)]
    raise ValueError("not arithmetic over names and integers")


def _evaluate(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Name(id=name):
            return sizes[name]
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(operand=operand):
            return -_evaluate(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_evaluate(left, sizes), _evaluate(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name.lower()](*(_evaluate(arg, sizes) for arg in args))
    raise AssertionError("_names lets nothing else through")
