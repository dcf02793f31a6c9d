"""Searches that work for every structure, made of the oracles it has."""
