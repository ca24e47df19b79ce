"""Adapters behind the ports of the application: where facts are kept."""
