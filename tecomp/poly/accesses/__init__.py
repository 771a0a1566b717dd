"""Elements that lanes, iterations and cores access, and copies between two index maps."""
