"""Make inputs that a model accepts: dims first, then values."""
