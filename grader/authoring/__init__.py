"""Builds `course/`, which learners open, from `source/`, which authors edit; a rebuild gives the same bytes.

A source notebook is a py:percent file. Its author needs to know this:

- A cell's nbgrader metadata is in its header: `# %% nbgrader={"grade_id": "softmax", "solution": true}`. The check
  cell has `{"grade_id": "check-softmax", "grade": true, "locked": true, "points": 10}` and the text `check(softmax)`.
- Solutions are between `### BEGIN SOLUTION` and `### END SOLUTION`, or in a CUDA C++ string between
  `// BEGIN SOLUTION` and `// END SOLUTION`. The stub depends on the place of the region (`stubs`).
- Numbers in prose are read from their origin (`prose`): `⟦ exercise("softmax").max_points ⟧`, `⟦ gate("softmax",
  "torch").at_least ⟧`, `⟦ recorded(bench="softmax", case="4096 × 8192", metric="bandwidth_gbps", gpu="H200") ⟧`.
- Every other file under `source/` (figures, data) is copied to the same place under `course/`.
"""
