"""Function passes: one file a pass, a folder for each kind of operator that they rewrite."""
