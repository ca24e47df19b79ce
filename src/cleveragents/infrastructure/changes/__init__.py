"""What actors did, on its way from their sandboxes through the plan's tree to the user's."""
