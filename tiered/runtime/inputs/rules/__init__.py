"""TODO tiered/runtime/inputs/rules"""
