"""A graph evaluated with elements that are no numbers: a node, its operands, bodies and calls."""
