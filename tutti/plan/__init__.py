"""How many devices a load needs: the real scheduler on a virtual clock, with the costs that a device has shown."""
