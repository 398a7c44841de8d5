"""Producers of all kinds of distributed filters: their batches, times and messages."""
