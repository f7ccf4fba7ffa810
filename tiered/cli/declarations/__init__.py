"""The commands as `tiered.cli.app` registers them: functions with their options and help.

They load `tiered.cli.commands`, which implements them, when they are called.
"""
