"""Programs of many stages: groups of them, and loops for what is of no kind."""
