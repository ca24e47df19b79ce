from __future__ import annotations

from download_progress import DownloadProgress


def test_progress_grows():
    progress = DownloadProgress(total=4)
    assert progress.add_chunk(1) == 0.25
    assert progress.percent == 25.0
    assert progress.add_chunk(3) == 1.0
    assert progress.finished == 1
    progress.restart()
    assert progress.percent == 0.0
