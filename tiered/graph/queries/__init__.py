"""Queries of a graph that do not edit it: networkx views, operator traits, checks."""
