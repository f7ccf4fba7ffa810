from tiered.analysis.batching.another_size import rebatch as rebatch

__all__: list[str]
