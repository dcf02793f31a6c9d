"""Feature rows, what a token, an arc or a document looks like to a linear model, and the arithmetic with them."""
