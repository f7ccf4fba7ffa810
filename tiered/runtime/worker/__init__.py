"""TODO tiered/runtime/worker"""
