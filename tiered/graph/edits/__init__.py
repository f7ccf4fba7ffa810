"""The edits of a graph: primitives that write the journal, and what is composed of them."""
