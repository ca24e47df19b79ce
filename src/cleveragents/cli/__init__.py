"""The command line: one file per command; `output` is the only module that prints."""
