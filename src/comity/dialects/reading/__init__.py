"""How documents of any dialect are read and written."""
