"""Sites: where cells live, how they are asked, fail and come back."""
