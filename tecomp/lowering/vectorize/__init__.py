"""Loops whose iterations run at once: as lanes of vectors, or written out."""
