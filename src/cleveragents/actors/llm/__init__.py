"""Actors that ask models: admitted by the budget, durable turn by turn, recovered from faults."""
