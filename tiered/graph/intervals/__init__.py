"""Range analysis: an interval that holds all elements of each value, whatever is fed."""
