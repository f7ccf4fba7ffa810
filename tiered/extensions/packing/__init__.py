"""Sequence packing: several short sequences in one row of a transformer encoder."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
