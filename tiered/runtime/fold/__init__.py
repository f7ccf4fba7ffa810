"""Evaluate constant nodes on onnxruntime, and estimate beforehand what that costs."""
