"""What a producer does whatever the filter: batches, their times, and what is sent."""
