"""Parser of the printed IR."""
