"""Every error that the grader raises on purpose.

```text
GraderError                what happened, where, and what to do about it; exit status 2
├── UnknownExercise        no exercise has this id
├── UnusableExercise       a module in a course folder's `exercises/` cannot be used
├── UnusableSubmission     there is nothing in it that could be graded
├── MachineLacks           a GPU, a compiler or a package is missing; says the command that mends it
├── ClassroomError         the course folder or the exchange is not as nbgrader needs it
└── JudgeStopped           the judge reached no verdict, through no fault of the submission
```
"""

from __future__ import annotations


class GraderError(Exception):
    """The base of all errors here; its text is one sentence for the person who meets it."""


class UnknownExercise(GraderError):
    """No exercise has the id that was asked for."""


class UnusableExercise(GraderError):
    """An exercise of a course folder: its module fails, its id is taken, or others can write to it."""


class UnusableSubmission(GraderError):
    """A file or cell in which nothing can be graded: empty, too large, no notebook, no such function."""


class MachineLacks(GraderError):
    """This machine lacks what the call needs."""


class ClassroomError(GraderError):
    """A course folder or an exchange that nbgrader could not work with."""


class JudgeStopped(GraderError):
    """The judge reached no verdict, through no fault of the submission: it ended, a baseline failed, or others hold
    the GPU's memory."""
