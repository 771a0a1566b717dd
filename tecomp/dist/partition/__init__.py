"""Which elements of an array each process has, and what is sent when that changes: sets alone."""
