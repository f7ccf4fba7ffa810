"""What elements are: terms that stand for bits, and numbers times terms, for reals."""
