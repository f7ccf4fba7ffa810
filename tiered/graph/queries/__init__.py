"""TODO tiered/graph/queries"""
