"""Our own git repository beside the user's tree: snapshots, commits, merges and diffs."""
