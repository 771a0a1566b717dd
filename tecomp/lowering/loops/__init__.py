"""From stages to loop nests over logical tensors."""
