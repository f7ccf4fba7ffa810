"""Elementwise operators: steps with a constant, their order of numbers, and broadcasting."""
