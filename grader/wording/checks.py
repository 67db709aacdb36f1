"""What each check of a program looks at."""

CHECKS = {
    "runs": "Your code runs, and JAX makes a program of it, in every test case.",
    "shape": "The result has the expected shape and dtype.",
    "values": "Every device ends up with the expected values.",
    "sharding": "The result has the expected sharding.",
    "communication": "The devices send no more than the exercise needs.",
    "work": "The work is divided among the devices.",
}
