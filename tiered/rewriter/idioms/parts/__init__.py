"""Tensors and products in parts along an axis."""
