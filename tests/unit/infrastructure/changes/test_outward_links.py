from __future__ import annotations

import pytest

from cleveragents.infrastructure.changes.outward_links import outward_links
from unit.infrastructure.changes.worlds import file, world

LINK = 0o120000


@pytest.fixture
def here(tmp_path):
    with world(tmp_path) as opened:
        yield opened


def found(here, writes):
    repository, base = here.changes.repository, here.begin()
    made = repository.commit(base, writes)
    return [one.path for one in outward_links(repository, made, repository.changes(base, made))]


@pytest.mark.parametrize(
    "target",
    ["/etc/passwd", "..", "../x", "a/../../x", "./a/.//../../x", ".git/hooks", "a/.GIT/x"],
)
def test_link_that_leads_out_is_found(here, target):
    assert found(here, {"link": file(target, LINK)}) == ["link"]


@pytest.mark.parametrize("target", ["app.txt", "a/../b", "no/such", ".", ".gitignore", "link"])
def test_link_that_stays_inside_or_leads_nowhere_is_not(here, target):
    assert found(here, {"link": file(target, LINK)}) == []


def test_absolute_link_into_the_tree_stays_inside(here):
    assert found(here, {"a/link": file(f"{here.root}/app.txt", LINK)}) == []
    assert found(here, {"a/link": file(f"{here.root}-other", LINK)}) == ["a/link"]


def test_link_through_other_links_is_followed_as_the_system_follows_it(here):
    """By its letters the second stays in `a/b`; followed, it leaves the tree by one."""
    links = {"a/b/up": file("../..", LINK), "over": file("a/b/up/../x", LINK)}
    assert found(here, links) == ["over"]


def test_depth_counts(here):
    assert found(here, {"a/b/link": file("../../app.txt", LINK)}) == []
    assert found(here, {"a/b/link": file("../../../app.txt", LINK)}) == ["a/b/link"]


def test_plain_files_and_links_that_were_there_are_not_told(here):
    repository, base = here.changes.repository, here.begin()
    start = repository.commit(base, {"old": file("/etc", LINK)})
    made = repository.commit(start, {"new": file("/etc"), "good": file("new", LINK)})
    assert outward_links(repository, made, repository.changes(start, made)) == ()
