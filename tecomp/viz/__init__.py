"""What users hold, as pictures: a file for each kind, with a function from the object to an SVG."""
