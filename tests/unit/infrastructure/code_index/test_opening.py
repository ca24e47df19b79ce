from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from cleveragents.bootstrap import Container
from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.infrastructure.code_index.opening import LazyCodeIndex, index_of
from cleveragents.settings import Settings
from cleveragents.testing import run_together
from indexkit import write


def names_of_threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("ca-code-index")]


def test_setting_decides_about_the_index(tmp_path):
    assert index_of("off") is None
    assert index_of("auto").folder is None
    assert index_of(str(tmp_path)).folder == tmp_path


def test_container_opens_nothing_until_context_is_asked_for(tmp_path):
    """Numbers are crunched by a large package, which most commands never need."""
    program = (
        "import sys; from cleveragents import Container, Settings;"
        f"Container(Settings(context_index_folder={str(tmp_path / 'index')!r})).close();"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
    assert not (tmp_path / "index").exists()


def test_all_who_ask_get_one_index(tmp_path):
    index = LazyCodeIndex(tmp_path / "index")
    opened = run_together([index.opened] * 8)
    assert len({id(one) for one in opened}) == 1
    index.close()


def test_closed_index_still_answers_and_starts_no_thread(tmp_path):
    write(tmp_path / "tree", {f"part_{n}.py": f"x = {n}\n" for n in range(300)})
    request = ContextRequest("x", tmp_path / "tree")
    for asked_before in (False, True):
        index = LazyCodeIndex(tmp_path / "index")
        if asked_before:
            index.opened()
        index.close()
        index.close()
        assert "part_0.py" in index.view(request, StopSignal()).paths
        assert names_of_threads() == []


@pytest.mark.parametrize("folder", ["auto", "off"])
def test_container_closes_its_index(tmp_path, folder):
    write(tmp_path, {"app.py": "def settle(): ...\n"})
    with Container(Settings(context_index_folder=folder)) as services:
        found = services.pipeline.build(services.request("settle", tmp_path))
    assert "def settle" in found.render()
    assert names_of_threads() == []
