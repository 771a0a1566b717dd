"""Storage formats: the bits that stand for an element in memory."""
