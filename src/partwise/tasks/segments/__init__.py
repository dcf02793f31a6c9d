"""Labelled segments of sequences: entities, chunks, with features of whole segments."""
