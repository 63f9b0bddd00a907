"""Judging a class: each text once, by judges side by side, with verdicts that outlive the run.

`judging` answers for a notebook's cell, from the `verdict_store` or from `workers`: this process's judge, several on
this machine, or those of a `dask_cluster`. It also knows which students an interrupted, forced grading has left.
"""
