"""Which work a cell takes."""
