"""Functions outside of programs: their names, what they take, and how they are called."""
