"""Weights and operands in eight bits or fewer: codes, their placement, a budget."""
