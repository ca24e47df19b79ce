"""Mends a proven race: one lock beside the state, held by every call that touches it."""
