"""Who holds what: devices, meshes, layouts, blocks, and numbers that are close."""
