"""Nodes in parts along an axis: how a cut passes through operators, regions, and a budget."""
