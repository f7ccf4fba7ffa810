"""Fleets: one command of tiered for many models, on this machine or on a Dask cluster."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
