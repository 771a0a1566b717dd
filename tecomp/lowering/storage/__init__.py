"""Physical buffer layouts, buffering and memory allocation."""
