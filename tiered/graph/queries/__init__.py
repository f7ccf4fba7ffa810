"""Questions about a graph that edit nothing: networkx views, operator traits, checks."""
