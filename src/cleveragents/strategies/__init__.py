"""Context strategies, one file each: each finds fragments for a request."""
