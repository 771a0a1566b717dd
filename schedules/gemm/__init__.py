"""Matrix products on CPUs: block sizes and loop nests."""
