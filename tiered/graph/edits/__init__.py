"""The edits of a graph: primitives that write the journal, and operations composed of them."""
