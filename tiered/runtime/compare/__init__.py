"""Compare what two models give: outputs as a whole, and tensors element by element."""
