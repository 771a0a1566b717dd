"""Program compiler: layout assignment, fusion, memory planning and linking of many operations."""
