"""Which places of two sequences belong together."""
