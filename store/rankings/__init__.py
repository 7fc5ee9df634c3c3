"""Pure rankings: records in, published figures out. No clock, no disk, no network, no chance."""
