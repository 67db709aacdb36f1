"""`python -m grader`, which is `grader`."""

from grader.cli import main

main()
