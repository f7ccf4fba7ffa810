"""TODO tiered/runtime/compare"""
