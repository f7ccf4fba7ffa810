"""What is built on the core and could be removed: a folder for each."""
