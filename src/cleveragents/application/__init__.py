"""What the product does, over the domain and small ports."""
