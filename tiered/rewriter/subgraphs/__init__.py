"""TODO tiered/rewriter/subgraphs"""
