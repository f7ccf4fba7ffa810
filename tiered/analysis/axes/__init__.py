"""How the axes of operands and outputs belong together."""
