"""Pure values and rules; this package imports nothing else of ours."""
