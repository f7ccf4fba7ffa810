"""Load, save and export models; weights stay on disk until they are read."""
