"""Local functions: what is outlined into them, and under which names."""
