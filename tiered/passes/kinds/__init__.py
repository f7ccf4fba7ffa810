"""The kinds of passes, and how each is written: rules, functions, classes, proto functions."""
