"""The index of passes: what is known of each pass before its file is loaded."""
