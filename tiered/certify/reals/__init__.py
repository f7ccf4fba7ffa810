"""The meaning of standard operators over the reals."""
