"""The page of a run: its passes, rewrites and declined nodes, and what its result is."""
