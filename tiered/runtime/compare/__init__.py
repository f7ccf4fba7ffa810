"""Compare the results of two models: outputs as a whole, and tensors element by element."""
