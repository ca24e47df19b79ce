from __future__ import annotations

from one_time_setup import Service


def test_service_starts_once():
    service = Service()
    assert service.route() == "help"
    assert not service.start()
    assert service.route("/x") == "not found"
    assert Service().start()
