"""Tools of MCP servers; the package `mcp` is imported when the first server is needed."""
