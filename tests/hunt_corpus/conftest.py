"""The corpus is data: its checks are run against a folder of it, never as tests of this project."""

from __future__ import annotations

collect_ignore = ["racy", "safe", "checks"]
