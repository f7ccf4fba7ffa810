"""Passes: their types, decorators, registry and execution."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
