"""Figures that the project states, measured: `make bench` on a GPU machine."""
