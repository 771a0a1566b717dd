"""Data layouts as index maps: stick, shard and tile layouts, storage formats and notations."""
