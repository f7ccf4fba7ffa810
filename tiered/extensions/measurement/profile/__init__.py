"""Where the time of a model goes: onnxruntime's profile, by operator, layer and node."""
