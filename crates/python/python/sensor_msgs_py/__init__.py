"""Functions on sensor messages. They need numpy."""
