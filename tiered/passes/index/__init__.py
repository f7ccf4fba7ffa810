"""TODO tiered/passes/index"""
