"""What is tried, one kind of thing in each file. Each scenario is a function that takes a place and raises `Failure`."""
