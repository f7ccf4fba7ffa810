"""The batch of a model: which axis of each tensor carries it, and another size for it."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
