"""The expressions of relay over the graphs of tiered: built, visited and mutated."""
