"""HTML pages in one file: sections, charts, diagrams of nodes, and their templates."""
