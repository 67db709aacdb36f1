"""JupyterLab as students need it, and as instructors do."""
