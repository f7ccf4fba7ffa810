"""The places of the package where one token changes, and what takes its place."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]

_TURNED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


class Mutant(NamedTuple):
    """One change of a module.

    Attributes:
        path: the module, from the root of the project.
        line: where it is.
        start: the offset of the text that goes, in bytes.
        end: its end.
        new: what takes its place.
        scopes: the functions and classes around it, the outermost first.
    """

    path: str
    line: int
    start: int
    end: int
    new: str
    scopes: tuple[str, ...] = ()

    def applied_to(self, source: bytes) -> bytes:
        """Return the module with the change."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    def place(self, source: bytes) -> str:
        """Return one line that says where it is and what it changes."""
        old = " ".join(source[self.start : self.end].decode().split())
        return f"{self.path}:{self.line}+{self.start} {old} -> {self.new}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a module: comparisons, conjuncts, conditions, constants, results.

    No change is made where it means the same for every run by the syntax alone: see `_evaluated`.
    What means the same for another reason is for a reader of the survivors to see.
    """
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for old, new, scopes in changes_of(ast.parse(source)):
        assert old.end_lineno is not None
        assert old.end_col_offset is not None
        yield Mutant(
            path.relative_to(ROOT).as_posix(),
            old.lineno,
            starts[old.lineno - 1] + old.col_offset,
            starts[old.end_lineno - 1] + old.end_col_offset,
            new,
            scopes,
        )


def changes_of(module: ast.Module) -> Iterator[tuple[ast.expr, str, tuple[str, ...]]]:
    """Yield the expressions that change, what takes their place, and the scopes around them."""
    for node, scopes in _evaluated(module):
        for old, new in _changes(node):
            yield old, new, scopes


def _evaluated(
    node: ast.AST, scopes: tuple[str, ...] = ()
) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    """Yield the nodes that may change a result, with the names of the scopes around them.

    Left out are the types of parameters and results, `if TYPE_CHECKING`, a Protocol, the size of
    an `lru_cache`, and the block that runs a module as a program: whoever imports it skips that.
    """
    left_out: ast.AST | None = None
    match node:
        case ast.If(test=test) if ast.unparse(test) in _SKIPPED:
            return
        case ast.ClassDef(bases=bases) if any(_is_protocol(base) for base in bases):
            return
        case ast.Call(func=function) if ast.unparse(function) in (
            "lru_cache",
            "functools.lru_cache",
        ):
            return
        case ast.arg(annotation=left_out) | ast.FunctionDef(returns=left_out):
            pass
    yield node, scopes
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        scopes = (*scopes, node.name)
    for child in ast.iter_child_nodes(node):
        if child is not left_out:
            yield from _evaluated(child, scopes)


_SKIPPED: Final = ("TYPE_CHECKING", "__name__ == '__main__'")


def _is_protocol(base: ast.expr) -> bool:
    return ast.unparse(base).partition("[")[0] == "Protocol"


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield expressions at a node with what may take their place."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            turned = _TURNED[type(operator)]()
            yield node, f"({ast.unparse(ast.Compare(left, [turned], [right]))})"
        case ast.BoolOp(op=operator, values=values):
            for at in range(len(values)):
                kept = [*values[:at], *values[at + 1 :]]
                rest = kept[0] if len(kept) == 1 else ast.BoolOp(operator, kept)
                yield node, f"({ast.unparse(rest)})"
        case ast.If(test=test) | ast.IfExp(test=test):
            yield test, "False"
        case ast.Return(value=ast.Constant(value=bool(value)) as constant):
            yield constant, str(not value)
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield node, f"({value + 1})"


def chosen(count: int, seed: int, under: str = "tiered") -> list[Mutant]:
    """Return random mutants of the package, as many for a module as it has places.

    Args:
        count: how many; fewer where there are not as many places.
        seed: of the choice.
        under: a folder of the project, or one module.
    """
    top = ROOT / under
    modules = [top] if top.is_file() else sorted(top.rglob("*.py"))
    # Tables that a script writes from what it finds.
    apart = {ROOT / "tiered" / "passes" / "index" / name for name in ("proofs.py", "table.py")}
    places = [each for path in modules if path not in apart for each in mutants_of(path)]
    return random.Random(seed).sample(places, min(count, len(places)))
