"""The version, alone, so that building and `--version` read nothing else."""

__version__ = "0.1.0"
