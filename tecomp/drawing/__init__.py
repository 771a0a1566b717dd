"""What pictures are drawn with: SVG text, a canvas, colours, widths of words, a legend, a page."""
