"""A term's organisation: the roster, due dates and late work, and the grades as tables, statistics and LMS files."""
