"""Every error that the grader raises on purpose.

```text
GraderError                what happened, where, and what to do about it; exit status 2
├── UnknownExercise        no exercise has this id
├── UnusableExercise       an exercise, or the module that defines it, cannot be used
├── UnusableSubmission     there is nothing in it to grade
├── MachineLacks           a GPU, a compiler or a package is missing; names the command that fixes it
├── ClassroomError         nbgrader cannot use the course folder or the exchange
└── JudgeStopped           the judge reached no verdict, through no fault of the submission
```
"""

from __future__ import annotations


class GraderError(Exception):
    """The base of all errors here; its text is one sentence for the user."""


class UnknownExercise(GraderError):
    """No exercise has the requested id."""


class UnusableExercise(GraderError):
    """An exercise that is faulty or whose functions fail, or a course's module that fails or that others can write."""


class UnusableSubmission(GraderError):
    """A file or cell in which nothing can be graded: empty, too large, not a notebook, no such function."""


class MachineLacks(GraderError):
    """Something that the call needs is missing on this machine."""


class ClassroomError(GraderError):
    """A course folder or an exchange that nbgrader cannot use."""


class JudgeStopped(GraderError):
    """The judge reached no verdict, through no fault of the submission: it ended, a baseline failed, or others hold
    the GPU's memory."""
