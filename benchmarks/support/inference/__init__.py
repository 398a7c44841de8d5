"""The trials of paper 5: streams, its filters as printed, and what their answers cost."""
