"""The printed form, read back."""
