"""How a context decides: selectors of passes, node scopes, checks and the decision itself."""
