"""IR node classes and their pretty printer."""
