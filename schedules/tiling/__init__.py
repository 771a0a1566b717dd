"""What schedules of processors are made of: tiles, vectors, folds, dot products."""
