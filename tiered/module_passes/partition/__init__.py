"""Passes that hand parts of a model to targets and devices."""
