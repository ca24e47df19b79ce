"""The code index: features of contents, computed once, searched with the statistics of a tree."""
