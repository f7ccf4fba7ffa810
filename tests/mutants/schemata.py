"""All mutants of a module in one compiled module, which a switch chooses among.

Each changed expression becomes `new if switch.is_on(number) else old`, so that one import serves
all mutants of the module. What is evaluated at import has run by then: see `is_switched`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import SourceLoader
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any, Final
from unittest import mock

from tests.mutants.sites import ROOT, Mutant, changes_of, mutants_of

Number = tuple[str, int]
"""A mutant: the path of its module from the root, and its place in `mutants_of`."""

_SWITCH: Final = "_mutant_switch_"
_IMPURE: Final = frozenset({
    "acquire", "add", "append", "discard", "next", "pop", "popitem", "popleft", "read", "recv",
    "remove", "super", "update",
})  # fmt: skip
"""Calls that may not be made a second time to see what the mutant would have computed."""


class Switch:
    """Which mutant is on, and which mutants a run would tell.

    Attributes:
        on: the mutant that is on, if any.
        told: collects the mutants that would give their expression another value in what runs;
            while it is None, nothing is compared.
        compares: whether values are compared; else each expression that runs counts.
    """

    def __init__(self) -> None:
        self.on: Number | None = None
        self.told: set[Number] | None = None
        self.compares = True

    def make_known(self) -> None:
        """Let compiled modules call this switch."""
        setattr(builtins, _SWITCH, self)

    def is_on(self, number: Number) -> bool:
        """Return whether a mutant is on."""
        return number == self.on

    def compared(self, number: Number, new: Callable[[], Any] | None, value: Any) -> Any:
        """Return a value, after a look at what the mutant would have made of it."""
        told = self.told
        if told is not None and number not in told:
            self.told = None  # what the mutant calls is not looked at
            try:
                if new is None or not self.compares or _differs(new, value):
                    told.add(number)
            finally:
                self.told = told
        return value


def _differs(new: Callable[[], Any], value: Any) -> bool:
    try:
        made = new()
        return type(made) is not type(value) or bool(made != value)
    except Exception:  # noqa: BLE001 - arrays have no truth, and the mutant may raise
        return True


class Schemata:
    """Modules that are compiled with all their mutants as they are imported.

    Args:
        modules: the paths of the modules, from the root.

    Attributes:
        mutants: by number; without those at import.
    """

    def __init__(self, modules: Sequence[str], switch: Switch) -> None:
        self.mutants: dict[Number, Mutant] = {}
        self._codes: dict[str, CodeType] = {}
        for module in modules:
            path = ROOT / module
            code, switched = compiled(path.read_bytes(), module, str(path))
            self._codes[str(path)] = code
            for at, mutant in enumerate(mutants_of(path)):
                if at in switched:
                    self.mutants[module, at] = mutant
        switch.make_known()

    def install(self) -> None:
        """Let imports take the modules with mutants from now on."""
        codes, get_code = self._codes, SourceLoader.get_code

        def own_or_made(self: SourceLoader, fullname: str) -> CodeType | None:
            return codes.get(self.get_filename(fullname)) or get_code(self, fullname)

        mock.patch.object(SourceFileLoader, "get_code", own_or_made).start()


def compiled(source: bytes, module: str, path: str) -> tuple[CodeType, set[int]]:
    """Return the code of a module with its mutants, and the places of those that can be on."""
    tree = ast.parse(source)
    changes: dict[int, list[tuple[int, str]]] = {}
    for at, (old, new, _) in enumerate(changes_of(tree)):
        changes.setdefault(id(old), []).append((at, new))
    switching = _Switching(module, changes)
    switched = ast.fix_missing_locations(switching.visit(tree))
    return compile(switched, path, "exec"), switching.switched


class _Switching(ast.NodeTransformer):
    def __init__(self, module: str, changes: Mapping[int, list[tuple[int, str]]]) -> None:
        self.switched: set[int] = set()
        self._module = module
        self._changes = changes
        self._depth = 0

    def visit(self, node: ast.AST) -> Any:
        changes = self._changes.get(id(node), [])
        if isinstance(node, ast.FunctionDef):
            return self._function(node)
        is_inner = isinstance(node, ast.Lambda)
        self._depth += is_inner
        made = super().visit(node)
        self._depth -= is_inner
        for at, new in changes if self._depth else ():
            self.switched.add(at)
            made = self._choice(made, at, new)
        return made

    def _function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Switch what runs at each call: decorators, defaults and types are of the definition."""
        self._depth += 1
        node.body = [self.visit(each) for each in node.body]
        self._depth -= 1
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        """Leave patterns alone, in which there may be no calls."""
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        node.body = [self.visit(each) for each in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        """Leave the type alone."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def _choice(self, old: ast.expr, at: int, text: str) -> ast.expr:
        number = ast.Tuple([ast.Constant(self._module), ast.Constant(at)], ast.Load())
        new = ast.parse(text, mode="eval").body
        again = ast.Constant(None) if _is_impure(new) else ast.Lambda(_NO_ARGUMENTS, new)
        compared = _call("compared", number, again, old)
        return ast.copy_location(ast.IfExp(_call("is_on", number), new, compared), old)


_NO_ARGUMENTS: Final = ast.arguments([], [], None, [], [], None, [])


def _call(method: str, *arguments: ast.expr) -> ast.Call:
    switch = ast.Name(_SWITCH, ast.Load())
    return ast.Call(ast.Attribute(switch, method, ast.Load()), [*arguments], [])


def _is_impure(expression: ast.expr) -> bool:
    for node in ast.walk(expression):
        match node:
            case ast.NamedExpr() | ast.Yield() | ast.YieldFrom():
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _IMPURE:
                return True
    return False
