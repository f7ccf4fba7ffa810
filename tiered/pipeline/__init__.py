"""How passes are put together: Sequential, Fixpoint, their text, the default order, optimize."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
