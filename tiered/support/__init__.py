"""Modules for all parts: options and their text, config, numeric classes, aliases, loading."""
