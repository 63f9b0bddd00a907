"""Measures a course's submissions anew, ranks them, publishes them under pseudonyms."""
