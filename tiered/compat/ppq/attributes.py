"""Attributes: those of an operation, as a table that writes into the model."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

from tiered.graph import Node


@dataclass(slots=True, eq=False)
class OperationAttributes(MutableMapping[str, Any]):
    """The attributes of a node; writing one writes it into the model."""

    _node: Node

    def __getitem__(self, name: str) -> Any:
        return self._node.attributes[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._node.owner.set_attribute(self._node, name, value)

    def __delitem__(self, name: str) -> None:
        self._node.owner.set_attribute(self._node, name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._node.attributes)

    def __len__(self) -> int:
        return len(self._node.attributes)
