"""What random models are made of; `tests.conformance.random_graphs` puts it together."""
