"""The name of an operator, as people write it."""

from __future__ import annotations


def operator_name(domain: str, op_type: str) -> str:
    """Return the name of an operator: Conv, and beside ONNX's own com.microsoft::Gelu."""
    return f"{domain}::{op_type}" if domain else op_type
