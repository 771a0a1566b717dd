"""Ways through expressions and statements: to rewrite, to verify, to store."""
