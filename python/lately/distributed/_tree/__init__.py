"""Bloom trees (paper 4, section 6)."""
