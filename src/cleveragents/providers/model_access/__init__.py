"""How models are reached: names and keys, one line for all calls, what a call used and may use."""
