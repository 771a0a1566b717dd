"""Integer sets: domains, accesses, layouts. The only room that knows isl."""
