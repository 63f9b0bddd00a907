"""The protocol between judge and worker: a channel, a flag and shared memory. It knows no exercises or verdicts."""
