"""Quantisation: which operators compute on integers, their scales, and what that costs."""
