"""The untrusted side: the one process that imports a submission. Nothing it says is believed."""
