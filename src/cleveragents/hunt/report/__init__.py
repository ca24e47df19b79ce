"""What a hunt found, told to people (terminal, Markdown) and to programs (SARIF, JSON)."""
