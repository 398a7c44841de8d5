"""Sliced filters: horizontal, vertical and diced (paper 4, section 3)."""
