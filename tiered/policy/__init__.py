"""TODO tiered/policy"""
