"""What structures share: recursions over semirings, hidden states."""
