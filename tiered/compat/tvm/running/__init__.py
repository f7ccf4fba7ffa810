"""Built models by the names of TVM: build, execute, devices."""
