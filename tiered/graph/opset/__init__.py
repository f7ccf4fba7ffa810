"""TODO tiered/graph/opset"""
