"""The default target without its profile: most runs need no more of it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tiered.targets.shared_rules import (
    NO_OPERATOR,
    Refusal,
    is_no_operator,
    is_standard,
    newer_operator,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tiered.graph import Node
    from tiered.targets.backend import Backend
    from tiered.targets.pipeline_edits import PipelineEdit
    from tiered.targets.shared_rules import Layout, QuantizationForm

DEFAULT: Final = "portable"
"""The name of the target of a run that names none."""

REGISTERED: Final[dict[str, Backend]] = {}
"""The backends added by `register_backend`, by name."""


class AnyRuntime:
    """The default target: it takes the operators of ONNX, of any dtype and shape."""

    edits: tuple[PipelineEdit, ...] = ()
    quantization_form: QuantizationForm = "none"
    layout: Layout = "any"
    layouts: Mapping[str, Layout] = MappingProxyType({})

    def supports(
        self, op_type: str, domain: str = "", dtype: int | None = None, version: int | None = None
    ) -> bool:
        """Return whether every runtime can be expected to have an operator, for any dtype."""
        return is_standard(op_type, domain)

    def has(self, node: Node) -> bool:
        """Return `supports` for the operator of a node; the node may be removed already."""
        return is_no_operator(node) or is_standard(node.op_type, node.domain)

    def refusals(self, node: Node) -> tuple[Refusal, ...]:
        """Return why a node is not for every runtime; empty if it is."""
        if node.owner.model.function(*node.callee) is not None:
            return ()
        if node.is_early:
            return (newer_operator(node) or NO_OPERATOR,)
        return () if self.has(node) else (NO_OPERATOR,)

    def runs_slowly(self, node: Node) -> bool:
        """Return False: the speed of kernels is unknown."""
        return False

    def may_be_slow(self, op_type: str, domain: str = "") -> bool:
        """Return False: the speed of kernels is unknown."""
        return False

    def __str__(self) -> str:
        return DEFAULT


ANY_RUNTIME: Final = AnyRuntime()
