"""What programs are, read off their access relations: products, windows, reductions."""
