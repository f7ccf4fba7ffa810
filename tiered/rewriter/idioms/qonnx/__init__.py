"""QONNX: quantisers of any number of bits, as function bodies and as Q/DQ."""
