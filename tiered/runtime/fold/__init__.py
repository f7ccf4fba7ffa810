"""TODO tiered/runtime/fold"""
