from tiered.batching.rebatch import rebatch as rebatch

__all__: list[str]
