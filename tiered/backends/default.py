"""The default target, as far as decisions ask of it: most runs need not read its profile."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tiered.backends.backend import Backend, Layout, QuantizationForm
    from tiered.backends.pipeline_edits import PipelineEdit
    from tiered.graph import Node

DEFAULT: Final = "portable"
"""The target where nobody names one."""

REGISTERED: Final[dict[str, Backend]] = {}
"""What `register_backend` added, by name."""

STANDARD_DOMAINS: Final = ("", "ai.onnx.ml")


class Refusal(NamedTuple):
    """Why a target does not take a node: what was found, and what would be taken instead."""

    found: str
    takes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.found}; it takes {', '.join(self.takes)}" if self.takes else self.found


NO_OPERATOR: Final = Refusal("the target has no such operator")


def is_standard(op_type: str, domain: str) -> bool:
    """Tell whether an operator is one of ONNX's own."""
    from tiered.graph.core.schema import schema_of  # and with it all of onnx

    return domain in STANDARD_DOMAINS and schema_of(op_type, domain) is not None


STANDARD_NAMES: Final = {"FastGelu": "Gelu"}
"""The operator of ONNX that does the same as a runtime's own operator of another name."""


def newer_operator(node: Node) -> Refusal | None:
    """Return that ONNX has the operator of a runtime's own node in a newer opset; None if not."""
    from tiered.graph.core.schema import schema_of

    name, opset = STANDARD_NAMES.get(node.op_type, node.op_type), node.owner.opset()
    newest = schema_of(name, "")
    if not node.domain or newest is None or schema_of(name, "", opset) is not None:
        return None
    later = range(opset + 1, newest.since_version + 1)
    first = next(version for version in later if schema_of(name, "", version) is not None)
    return Refusal(f"ONNX has {name} from opset {first} on; the model's opset is {opset}")


def is_no_operator(node: Node) -> bool:
    """Tell whether a node asks nothing of a target: a Constant is data, a call is what it calls."""
    return node.is_op("Constant") or node.domain.startswith("tiered.")


class AnyRuntime:
    """What the profile of the default target says to decisions, without the profile."""

    edits: tuple[PipelineEdit, ...] = ()
    quantization_form: QuantizationForm = "none"
    layout: Layout = "any"
    layouts: Mapping[str, Layout] = MappingProxyType({})

    def supports(
        self, op_type: str, domain: str = "", dtype: int | None = None, version: int | None = None
    ) -> bool:
        """Tell whether every runtime can be expected to have an operator, of whichever dtype."""
        return is_standard(op_type, domain)

    def has(self, node: Node) -> bool:
        """Tell it of the operator of a node, which may be removed already."""
        return is_no_operator(node) or is_standard(node.op_type, node.domain)

    def refusals(self, node: Node) -> tuple[Refusal, ...]:
        """Return why not every runtime takes a node; nothing if all do."""
        is_taken = self.has(node) or node.owner.model.function(*node.callee) is not None
        return () if is_taken else (NO_OPERATOR,)

    def runs_slowly(self, node: Node) -> bool:
        """Return whether its kernel is slower than its parts, which is not known of any."""
        return False

    def may_be_slow(self, op_type: str, domain: str = "") -> bool:
        """Return whether a kernel of an operator is slower than its parts, which is not known."""
        return False

    def __str__(self) -> str:
        return DEFAULT


ANY_RUNTIME: Final = AnyRuntime()
