"""The nouns of the view (Model, Graph, Node, Value, Tensor), the journal and use lists."""
