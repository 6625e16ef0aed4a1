"""What is tried, one kind of thing in each file: functions that take a place and raise `Failure`."""
