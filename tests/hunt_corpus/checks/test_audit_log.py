from __future__ import annotations

from audit_log import AuditLog


def test_chain_holds():
    log = AuditLog()
    assert log.last() is None
    log.append("a")
    digest = log.append("b")
    assert log.last().digest == digest
    assert log.verify()
