"""Instruments watch passes: `PassContext(instruments=[Timing()])`; each loads at first use."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
