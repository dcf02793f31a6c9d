"""Which documents of a query come first."""
