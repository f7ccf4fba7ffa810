"""What a context is made of: decisions, entries, scopes, hooks, and the report of what happened."""
