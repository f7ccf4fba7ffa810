"""The commands, one file each; `tiered.cli.declarations` has their names, options and help."""
