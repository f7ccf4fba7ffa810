"""Patterns by the names of TVM: dataflow patterns, and the names of operators."""
