"""The command line: what commands declare, the one reader of the words, help and completion."""
