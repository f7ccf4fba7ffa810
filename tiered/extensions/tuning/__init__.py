"""Tuning: which decisions of the pipeline pay for this model on this machine, by measurement."""
