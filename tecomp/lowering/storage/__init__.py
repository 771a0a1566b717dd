"""Where elements are stored: physical buffers, and the memory that they get."""
