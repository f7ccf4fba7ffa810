"""Partitions: which nodes a target takes together, as functions or as models of their own."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
