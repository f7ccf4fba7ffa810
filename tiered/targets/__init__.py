"""Backends: targets as data, and the nodes of a model that they support; loaded on first use."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
