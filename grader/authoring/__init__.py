"""From `source/` (what authors edit) to `course/` (what learners open): one way, byte for byte the same each time.

A source notebook is a py:percent file. What an author needs to know of it:

- A cell's nbgrader metadata stands in its header: `# %% nbgrader={"grade_id": "softmax", "solution": true}`; the check
  cell's is `{"grade_id": "check-softmax", "grade": true, "locked": true, "points": 10}` and its text `check(softmax)`.
- What learners write stands between `### BEGIN SOLUTION` and `### END SOLUTION`; in a CUDA C++ string between
  `// BEGIN SOLUTION` and `// END SOLUTION`. The stub is chosen by where the region stands (`stubs`).
- Numbers in prose come from where they live (`prose`): `⟦ exercise("softmax").max_points ⟧`, `⟦ gate("softmax",
  "torch").at_least ⟧`, `⟦ recorded(bench="softmax", case="4096 × 8192", metric="bandwidth_gbps", gpu="H200") ⟧`.
- Every other file under `source/` (figures, data) is copied to the same place under `course/`.
"""
