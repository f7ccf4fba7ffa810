"""The output of commands: the terminal, tables, the summary, the JSON, plans and failures."""
