"""Parts of models, and models of parts."""
