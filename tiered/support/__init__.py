"""TODO tiered/support"""
