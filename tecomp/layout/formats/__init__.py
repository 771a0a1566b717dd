"""Storage formats: the bit representation and the addresses of elements in memory."""
