"""Vectors of code chunks by a model from the user's disk; nothing here touches a network."""
