"""TODO tiered/graph/edits"""
