"""What goes between arrays and others: memory of other libraries, devices, text."""
