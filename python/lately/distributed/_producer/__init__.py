"""What every producer does, whatever the filter: batches, their times, and messages."""
