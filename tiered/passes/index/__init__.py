"""The index of passes: the info of each pass, without its file."""
