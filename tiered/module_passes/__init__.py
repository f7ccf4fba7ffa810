"""Module passes: one file a pass, for what needs more than one graph, or the interface."""
