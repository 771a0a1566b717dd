"""The whole way at once: a schedule becomes a kernel that can be called."""
