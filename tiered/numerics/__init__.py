"""Narrower numbers: precision, quantisation and the ranges that they need."""
