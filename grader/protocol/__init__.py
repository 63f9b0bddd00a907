"""What the judge and the worker share: a channel, a flag, and memory. Nothing here knows of exercises or verdicts."""
