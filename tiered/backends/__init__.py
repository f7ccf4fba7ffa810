"""Backends: targets as data, and what of a model they take; all of it loads on first use."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
