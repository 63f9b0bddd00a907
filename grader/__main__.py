"""`python -m grader` is the command `grader`."""

from grader.cli import main

main()
