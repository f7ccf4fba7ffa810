"""Evaluate constant nodes on onnxruntime, and estimate its cost beforehand."""
