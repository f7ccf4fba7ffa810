"""Backends: targets as data, and what of a model they take; all of it loads on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiered.loading import load_later

if TYPE_CHECKING:
    from tiered.backends.backend import API_VERSION, Backend, Quantization, Verification
    from tiered.backends.coverage import Coverage, Gap
    from tiered.backends.default import DEFAULT, Refusal
    from tiered.backends.known import (
        backend_names,
        get_backend,
        register_backend,
        unregister_backend,
    )
    from tiered.backends.rules import AttributeRule, Bounds, OperatorRule

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

_HOME = {
    "backend": ("API_VERSION", "Backend", "Quantization", "Verification"),
    "coverage": ("Coverage", "Gap"),
    "default": ("DEFAULT", "Refusal"),
    "known": ("backend_names", "get_backend", "register_backend", "unregister_backend"),
    "rules": ("AttributeRule", "Bounds", "OperatorRule"),
}

if not TYPE_CHECKING:  # with a __getattr__ to fall back to, type checkers would take any name
    __getattr__, __dir__ = load_later(__name__, _HOME)
