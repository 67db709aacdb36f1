"""What runs behind the walls. Everything in this folder is shown there, and nothing else of the classroom."""
