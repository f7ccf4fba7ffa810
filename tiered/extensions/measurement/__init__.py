"""The latency of models: measured in processes of their own, and compared in pairs."""
