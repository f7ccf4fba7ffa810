"""TODO tiered/idioms"""
