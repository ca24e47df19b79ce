from __future__ import annotations

from document_service import DocumentService, MemoryStorage


def test_lines_are_appended():
    service = DocumentService(MemoryStorage())
    assert service.append("a", "one") == 1
    assert service.append("a", "two") == 2
    assert service.read("a") == (2, "one\ntwo\n")
