"""Rewriting: the pattern language, the matcher and the driver; rarely used parts load lazily."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
