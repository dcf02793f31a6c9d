"""From column files and attributes of tokens to feature numbers, in integers."""
