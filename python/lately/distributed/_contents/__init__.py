"""What a site holds."""
