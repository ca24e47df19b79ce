"""What model providers cost, and later how they are reached."""
