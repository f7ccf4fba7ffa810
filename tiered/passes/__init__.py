"""Passes: what they are, how they are written, how they are found."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
