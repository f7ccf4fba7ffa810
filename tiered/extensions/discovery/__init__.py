"""Discovery: rules that the pipeline lacks, found by enumeration and in models.

Small graphs are enumerated bottom-up and grouped by what the checker of certificates says that
they compute. A graph that the pipeline does not bring to the cheapest one of its group is a rule
that is missing. `tiered.discovery` is this package. No other part of tiered imports it.
"""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
