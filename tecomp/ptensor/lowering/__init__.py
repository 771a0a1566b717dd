"""From operations on parallel tensors to tensors, regions of devices, and calls for teams."""
