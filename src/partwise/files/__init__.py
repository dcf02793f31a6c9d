"""What is on disk: files that appear whole or not at all, tensors, text in any encoding, pictures."""
