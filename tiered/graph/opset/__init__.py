"""Opset adapters: each operator is read and written in the form of the model's opset."""
