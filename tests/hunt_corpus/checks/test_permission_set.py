from __future__ import annotations

from permission_set import PermissionSet


def test_grant_and_revoke():
    permissions = PermissionSet()
    assert permissions.allows("read")
    permissions.grant("write")
    assert permissions.revoke("read")
    assert not permissions.revoke("read")
    assert permissions.allows("write")
    assert permissions.revision == 2
