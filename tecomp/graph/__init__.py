"""Programs of many operations: what is computed together, and in which layouts values lie."""
