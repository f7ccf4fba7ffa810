"""Configs of single tensors: policies, states, scales by hand or measured, and Q/DQ from them."""
