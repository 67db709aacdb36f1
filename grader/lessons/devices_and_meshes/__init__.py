"""The exercises of `devices_and_meshes`; a file is a stretch of the lesson."""
