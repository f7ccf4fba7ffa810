"""The commands, one file each; `tiered.cli.app` has their names, options and help."""
