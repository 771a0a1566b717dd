"""What it takes to move a tensor: loops of a DMA engine, contiguous runs."""
