"""Values to instructions: arithmetic, conversions, functions and vectors of any length."""
