"""TODO tiered/graph/io"""
