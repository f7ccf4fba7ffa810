"""The registers of a compiled pattern: where a search keeps its names and nodes; see `compile`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tiered.rewriter.pattern import Chain, OpPattern, Pattern
from tiered.rewriter.var_conditions import Condition

Registers = list[Any]

UNBOUND: Final[Any] = object()
TAKEN: Final = 0
"""The register of the matched nodes: the serial number of each, with the kind of its pattern."""
ACCEPT: Final = 1
"""The register of the function that accepts a match, which ends the search."""


class RegisterMap:
    """Allocates the registers of one compiled pattern.

    Attributes:
        size: the number of registers.
        ops: (register, pattern) of each operator and chain.
        names: (name, register) of each name that the pattern binds.
        conditions: (register, index of the output if the register holds a node, condition).
    """

    def __init__(self) -> None:
        self.size = 2
        self.ops: list[tuple[int, OpPattern | Chain]] = []
        self.names: list[tuple[str, int]] = []
        self.conditions: list[tuple[int, int | None, Condition]] = []
        self._register_of: dict[Any, int] = {}
        self._kinds: dict[Pattern, int] = {}
        self._kind_of: dict[int, int] = {}
        # Kept alive, so that no other pattern gets its id.
        self._seen: dict[int, Pattern] = {}

    def new(self, count: int = 1) -> int:
        """Return the first of some new registers."""
        first = self.size
        self.size += count
        return first

    def of_name(self, name: str) -> int:
        """Return the register of a variable."""
        if name not in self._register_of:
            self._register_of[name] = self.new()
            self.names.append((name, self._register_of[name]))
        return self._register_of[name]

    def of_node(self, pattern: OpPattern | Chain) -> int:
        """Return the register of the node that a pattern object matches, wherever it occurs."""
        same = pattern.identity if isinstance(pattern, OpPattern) else pattern
        if id(same) not in self._register_of:
            register = self._register_of[id(same)] = self.new()
            self.ops.append((register, same))
            if same.node_name:
                self.names.append((same.node_name, register))
        register = self._register_of[id(same)]
        if id(pattern) not in self._seen:
            self._seen[id(pattern)] = pattern
            output = pattern.output if isinstance(pattern, OpPattern) else 0
            self.conditions += [(register, output, found) for found in pattern.conditions]
        return register

    def kind(self, pattern: OpPattern) -> int:
        """Return a number that equal patterns share."""
        identity = pattern.identity
        known = self._kind_of.get(id(identity))
        if known is None:
            # `of_node` keeps the object alive, and with it its id.
            same = replace(identity, conditions=()) if identity.conditions else identity
            known = self._kind_of[id(identity)] = self._kinds.setdefault(same, len(self._kinds))
        return known
