"""Backends: targets as data, and what of a model they take."""

from tiered.backends.backend import API_VERSION, Backend, Quantization, Verification
from tiered.backends.coverage import Coverage, Gap
from tiered.backends.known import (
    DEFAULT,
    backend_names,
    get_backend,
    register_backend,
    unregister_backend,
)
from tiered.backends.rules import AttributeRule, Bounds, OperatorRule, Refusal

__all__ = [
    "API_VERSION",
    "DEFAULT",
    "AttributeRule",
    "Backend",
    "Bounds",
    "Coverage",
    "Gap",
    "OperatorRule",
    "Quantization",
    "Refusal",
    "Verification",
    "backend_names",
    "get_backend",
    "register_backend",
    "unregister_backend",
]
