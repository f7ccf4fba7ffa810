"""Certificates: a checker that proves rewrites on the user's model and knows no pass.

`terms` and `bits` are the domain of bits, `rules/` the meaning of operators as tables, `evaluate`
walks a graph, `checker` decides. None of these imports a pass, the
rewriter, a pipeline or an idiom. `instrument` and `models` use the checker.
"""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
