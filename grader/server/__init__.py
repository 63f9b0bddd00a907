"""Grading on submit: `grader classroom serve` judges each submission as soon as it arrives.

`web` accepts submissions over HTTP, from learners with one of the `tokens`, into the durable `job_queue`, and serves
the published leaderboard. `judge_loop` takes the jobs out, in a process of its own, and enters the verdicts into the
leaderboard. `serving` starts and ends both processes. `submitting` is the learner's side, `grader submit`.
"""
