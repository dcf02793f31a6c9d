"""Which label each token of a sequence has."""
