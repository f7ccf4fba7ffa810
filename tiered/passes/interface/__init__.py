"""What a pass is to others: its info, the registry, reports and hooks; below the context."""
