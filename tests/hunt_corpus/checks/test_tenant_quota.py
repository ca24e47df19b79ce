from __future__ import annotations

from tenant_quota import QuotaService


def test_quota_is_per_tenant():
    quota = QuotaService(limit=2)
    assert quota.consume("a", 2)
    assert not quota.consume("a")
    assert quota.consume("b")
    assert quota.used("a") == 2
