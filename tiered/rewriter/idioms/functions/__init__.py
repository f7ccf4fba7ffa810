"""Local functions and branches: what is outlined, under which names, and outputs of an If."""
