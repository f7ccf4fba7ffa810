"""TODO tiered/graph/core"""
