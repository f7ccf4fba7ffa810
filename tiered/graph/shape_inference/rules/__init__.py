"""The rules of shape inference, by family of operators."""
