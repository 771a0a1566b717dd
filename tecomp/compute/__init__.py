"""What is computed: tensors, and expressions of their indices."""
