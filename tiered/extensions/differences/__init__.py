"""What changed between any two models: interface, weights, operators, and nodes in their places."""
