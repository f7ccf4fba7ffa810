"""Make the documentation site: its sources, the page of each pass, and its checks."""
