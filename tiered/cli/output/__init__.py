"""What commands print: the terminal, tables, the summary, the JSON, plans and failures."""
