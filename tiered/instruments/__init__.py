"""What watches passes: `PassContext(instruments=[Timing(), Diff()])`; each loads at first use."""

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
