"""Rules shared by all targets: ONNX's own operators, and the form of a refusal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tiered.support.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tiered.graph import Node

Layout = Literal["NCHW", "NHWC", "any"]
QuantizationForm = Literal["none", "qdq", "operators"]

STANDARD_DOMAINS: Final = ("", "ai.onnx.ml")


class Refusal(NamedTuple):
    """The reason for which a target rejects a node: the property found, and the accepted ones."""

    found: str
    takes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.found}; it takes {', '.join(self.takes)}" if self.takes else self.found


NO_OPERATOR: Final = Refusal("the target has no such operator")


def is_standard(op_type: str, domain: str) -> bool:
    """Return whether ONNX defines an operator."""
    from tiered.graph.core.schema import schema_of  # and with it all of onnx

    return domain in STANDARD_DOMAINS and schema_of(op_type, domain) is not None


def check_operator(name: str, own: Iterable[tuple[str, str]]) -> None:
    """Raise if neither the standard nor a target has an operator.

    Args:
        name: the operator: Softmax, com.microsoft::Gelu.
        own: (domain, operator) of those that the target lists.

    Raises:
        UsageError: they lack it. Domains without any known operator may have all names.
    """
    from tiered.graph.core.schema import operators_of  # and with it all of onnx

    domain, _, op_type = name.rpartition("::")
    known = {*(other for space, other in own if space == domain), *operators_of(domain)}
    if known and op_type not in known:
        raise UsageError(f"there is no operator {name!r}{did_you_mean(op_type, known)}")


STANDARD_NAMES: Final = {"FastGelu": "Gelu"}
"""ONNX's name of a runtime's own operator, where the names differ."""


def newer_operator(node: Node) -> Refusal | None:
    """Return a refusal if only a newer opset of ONNX has the operator of a node.

    The node has a runtime's own operator, or is early (`Node.is_early`).
    """
    return in_newer_opset(node.op_type, node.owner.opset())


def in_newer_opset(op_type: str, opset: int) -> Refusal | None:
    """Return a refusal if only a newer opset of ONNX has an operator, by its name in ONNX."""
    from tiered.graph.core.schema import schema_of

    name = STANDARD_NAMES.get(op_type, op_type)
    newest = schema_of(name, "")
    if newest is None or schema_of(name, "", opset) is not None:
        return None
    later = range(opset + 1, newest.since_version + 1)
    first = next(version for version in later if schema_of(name, "", version) is not None)
    return Refusal(f"ONNX has {name} from opset {first} on; the model's opset is {opset}")


def is_no_operator(node: Node) -> bool:
    """Return whether a node needs no kernel: a Constant, or a marker of tiered."""
    return node.is_op("Constant") or node.domain.startswith("tiered.")
