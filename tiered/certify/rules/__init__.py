"""The meaning of operators: tables of rules, by family."""
