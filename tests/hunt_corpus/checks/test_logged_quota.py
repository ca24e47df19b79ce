from __future__ import annotations

from logged_quota import LoggedQuota


def test_quota_is_limited():
    quota = LoggedQuota()
    assert quota.take()
    assert not quota.take()
    quota.give()
    quota.give()
    assert quota.used == 0
