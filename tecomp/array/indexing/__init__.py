"""Elements of arrays by index: views, reads, assignments, and who shares what."""
