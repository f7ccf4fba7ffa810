"""Preparing a model for production: steps in the order that works, run, verified and replayable."""
