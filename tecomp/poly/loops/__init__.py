"""Sets as loops: regions inside of loops, boxes around them, loops that scan them."""
