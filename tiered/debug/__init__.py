"""Find out what is wrong: compare models, blame one rewrite, cut out what shows it, shrink it.

The names below load on first use.
"""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
