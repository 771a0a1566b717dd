"""Building blocks of CPU schedules: register tiles, vectors, reduction trees, matrix products."""
