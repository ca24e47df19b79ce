"""Put a plan's merged changes into the user's tree once, all or nothing, also under kill -9."""
