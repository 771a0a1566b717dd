"""The language that everything is lowered to: expressions, statements, functions."""
