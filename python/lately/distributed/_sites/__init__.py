"""Sites: where cells live, wherever that is, and how they are asked, fail and come back."""
