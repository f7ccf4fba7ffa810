"""TODO tiered/graph/shape_inference/rules"""
