"""TODO tiered/runtime/inputs"""
