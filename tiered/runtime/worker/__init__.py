"""The process of its own that loads and runs models: client, server, and frames between them."""
