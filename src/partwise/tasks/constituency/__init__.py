"""Which words form phrases, and phrases larger ones: trees by a grammar."""
