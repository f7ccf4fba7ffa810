"""The entries of the metadata that mark a result: its model, and what its steps promise."""

from __future__ import annotations

from typing import Final

MARK_KEYS: Final = ("tiered.source", "tiered.root", "tiered.promise", "tiered.root_promise")
"""The digest of the model that was read, that of the first of its chain, and the promises."""

MARKS: Final = "marks"
"""What `strip` calls them."""
