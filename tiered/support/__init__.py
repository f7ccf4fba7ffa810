"""What every part may use: options and their text, config, numeric classes, aliases, loading."""
