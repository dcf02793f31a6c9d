"""Which bases of an RNA pair: its secondary structure."""
