"""Sandboxes: where the files of an attempt live, and how nothing leaves them."""
