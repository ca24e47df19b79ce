"""The services: shared, thread-safe, wired once by `cleveragents.bootstrap`."""
