"""Who does the work of a node, and the tools that they may use."""
