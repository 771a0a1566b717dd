"""One process runs a script, and the others do what it sends: operations on arrays of teams."""
