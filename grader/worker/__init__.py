"""The untrusted side: the process that imports a submission. Nothing that it reports is believed."""
