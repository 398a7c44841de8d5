"""Sites: where cells are, how messages reach them, how they fail and restart."""
