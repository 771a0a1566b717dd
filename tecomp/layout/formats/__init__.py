"""Storage formats: the bit representation of elements in memory."""
