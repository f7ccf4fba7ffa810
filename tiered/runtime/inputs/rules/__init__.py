"""What operators demand of their inputs: values, indices and sizes."""
