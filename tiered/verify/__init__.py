"""Proving passes on the user's own model: promises, structure, and the instrument `Verify`.

`from tiered import verify`; the names below load on first use.
"""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
