"""What students hand in: archives, platforms, notebooks of any make."""
