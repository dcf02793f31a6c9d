"""Factor graphs: variables with states, soft factors and hard constraints."""
