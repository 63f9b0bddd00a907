"""Why a right submission is slow: evidence, the causes that it supports, and where the time goes."""
