"""Definitions of custom operators, so that models with them can be verified.

A definition is a body in ONNX's own operators, a Python function, or a library for onnxruntime. It
is not written into models: the target implements the operator.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tiered.support.errors import BackendError, words_of

if TYPE_CHECKING:
    import onnx

Key = tuple[str, str]
"""The domain and the name of an operator."""
DEFINITIONS = "a body (ONNX text), a Python reference, or a library for onnxruntime (custom_ops)"


@dataclass(frozen=True)
class CustomOperator:
    """The definition of one custom operator.

    Attributes:
        domain, op_type: the operator.
        body: a function in ONNX's text form, as `GateLinear (x, w) => (y) { ... }`; its header,
            `<domain: "zeta", opset_import: ["": 21]>`, is optional.
        reference: a function of arrays that returns an array, or a tuple of them; attributes are
            keyword arguments. As a string: "module:function".
        library: the path of a library that registers the operator with onnxruntime.
    """

    domain: str
    op_type: str
    body: str = ""
    reference: str | Callable[..., Any] | None = None
    library: str = ""

    def __post_init__(self) -> None:
        given = [bool(self.body), self.reference is not None, bool(self.library)]
        if sum(given) != 1:
            raise BackendError(f"{self}: expected one of {DEFINITIONS}, found {sum(given)} of them")
        if not self.domain or not self.op_type:
            raise BackendError(f"{self}: expected a domain and a name, as in 'zeta::GateLinear'")

    @classmethod
    def of(cls, name: str, **definition: Any) -> CustomOperator:
        """Return the definition of "domain::Name".

        Raises:
            BackendError: the name has no domain, or there is not exactly one definition.
        """
        domain, _, op_type = name.strip().rpartition("::")
        return cls(domain, op_type, **definition)

    @property
    def key(self) -> Key:
        return self.domain, self.op_type

    def __str__(self) -> str:
        return f"{self.domain}::{self.op_type}"

    def function(self, imports: Iterable[onnx.OperatorSetIdProto]) -> onnx.FunctionProto:
        """Return the body as a function.

        Args:
            imports: the opset imports of the model, for a body without a header.

        Raises:
            BackendError: the text is no function of this operator.
        """
        from onnx import parser

        text = self.body.strip()
        if not text.startswith("<"):
            opsets = ", ".join(f'"{each.domain}": {each.version}' for each in imports)
            text = f'<domain: "{self.domain}", opset_import: [{opsets}]> {text}'
        try:
            function = parser.parse_function(text)
        except parser.ParseError as error:
            raise BackendError(f"the body of {self}: {words_of(error)}") from error
        if (function.domain, function.name) != self.key:
            found = f"{function.domain}::{function.name}"
            raise BackendError(f"the body of {self}: expected a function of that name, not {found}")
        return function

    def callable(self) -> Callable[..., Any]:
        """Return the Python reference.

        Raises:
            BackendError: there is no such function.
        """
        if not isinstance(self.reference, str):
            assert self.reference is not None, "the reference is the only definition"
            return self.reference
        module, _, name = self.reference.partition(":")
        try:
            found: Callable[..., Any] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise BackendError(
                f"the reference of {self}: cannot import {self.reference!r} "
                f"(expected 'module:function'): {error}"
            ) from error
        return found
