"""Certificates: a checker that proves rewrites on the user's model and knows no pass.

To believe it, read in this order: `problem` is the question, `domains/` what elements are,
`evaluation/` walks a graph, `rules/` says what operators mean for bits, `reals/` and `definitions/`
what they mean over the reals, `checker` decides. None of these imports a pass, the rewriter, a
pipeline or an idiom. `regions/` cuts problems out of models; `instrument` asks for each rewrite.
"""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
