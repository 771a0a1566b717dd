"""External functions: registration, signatures and calls."""
