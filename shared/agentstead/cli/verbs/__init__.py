"""Verbs that a terminal shapes in a way of its own; everything else is made from the operations."""
