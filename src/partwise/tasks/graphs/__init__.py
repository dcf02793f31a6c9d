"""Which label each node of a graph, or each pixel of a picture, has."""
