"""Parts of the trace: rewrites and their changes as data, files, the tree, origins of nodes."""
