"""Drawing primitives: SVG output, a canvas, colours, text metrics, legends and HTML pages."""
