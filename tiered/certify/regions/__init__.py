"""What is compared: changed nodes and their borders, whole models, two models without a trace."""
