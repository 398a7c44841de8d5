"""What tests and benchmarks measure with."""
