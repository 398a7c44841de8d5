"""What `how_fast.py` is made of: streams, structures to race, the race, the roofline, and the picture."""
