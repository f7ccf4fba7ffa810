"""Calibration: the ranges of the tensors of a model, measured on samples of its inputs."""
