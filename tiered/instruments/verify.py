"""Verify: what it needs stands in `tiered.verify`, below the pipelines that use it."""

from tiered.verify.instrument import Verify

__all__ = ["Verify"]
