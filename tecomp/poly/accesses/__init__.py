"""What lanes, iterations and cores access, compared."""
