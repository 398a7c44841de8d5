"""Sites: where cells are, how messages reach them, and how they fail and restart."""
