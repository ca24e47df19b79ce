"""Where arguments come from."""

from __future__ import annotations

import datetime as dt
import enum
import json
import subprocess
import sys
import typing
from abc import ABC, abstractmethod
from collections.abc import (  # noqa: TC003  # the hints are resolved when the test runs
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path  # noqa: TC003  # as above
from types import SimpleNamespace
from typing import Any, Literal, Protocol, TypeVar

import pytest

from cleveragents.domain.errors import SetupError
from cleveragents.hunt.inputs import Ways, calls_of, constructions_of, known_inputs, trials
from cleveragents.hunt.inputs.hints import hints_of
from cleveragents.hunt.inputs.text import Text, name_of
from cleveragents.hunt.inputs.values import arguments_of

T = TypeVar("T")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Entry:
    key: str
    size: int


class Store(Protocol):
    def load(self, name: str) -> str: ...


class MemoryStore:
    def load(self, name: str) -> str:
        return name


class Clock(Protocol):
    def tick(self) -> int: ...


class Shape(ABC):
    @abstractmethod
    def area(self) -> int: ...


class Square(Shape):
    def area(self) -> int:
        return 1


def every_kind(  # noqa: PLR0913, PLR0917  # one parameter for each kind of hint
    number: int,
    word: str,
    maybe: float | None,
    many: list[int],
    pairs: Mapping[str, int],
    few: set[str],
    row: tuple[int, str],
    some: Sequence[bytes],
    bare: typing.Sequence,  # a hint without its parts, as people write it
    unknown: dict[str, Any],
    walk: Iterator[int],
    which: Literal["x", "y"],
    colour: Colour,
    entry: Entry,
    store: Store,
    clock: Clock,
    shape: Shape,
    make: Callable[[], int],
    kind: type[Entry],
    anything: Any,
    moment: dt.timedelta,
    path: Path,
    free: T,
    optional: int = 3,
    *,
    named: bool,
) -> T:
    del bare, unknown
    del number, word, maybe, many, pairs, few, row, some, walk, which, colour, entry, store, clock
    del shape, make, kind, anything, moment, path, optional, named
    return free


def test_every_kind_of_hint_gives_a_value_that_can_be_built() -> None:
    rows = arguments_of(every_kind)
    assert rows is not None
    names = {**globals(), "SimpleNamespace": SimpleNamespace, "datetime": dt}
    for row in rows:
        eval(f"every_kind({row.text})", names)  # our own text
    assert "optional" not in rows[0].text
    assert "MemoryStore()" in rows[0].text
    assert "Square()" in rows[0].text


def test_hints_that_only_type_checkers_import_are_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hinted_module.py").write_text(
        "from __future__ import annotations\n"
        "import typing\n"
        "if typing.TYPE_CHECKING:\n"
        "    from fractions import Fraction\n"
        "    from no_such_module_here import Missing\n"
        "def call(part: Fraction, key: Missing, count: int): ...\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    import hinted_module

    assert hints_of(hinted_module.call) == {"part": Fraction, "count": int}
    assert hints_of(SimpleNamespace(__module__="gone", __annotations__={"n": "int"})) == {"n": int}
    rows = arguments_of(hinted_module.call)
    assert rows is not None
    assert rows[0].text == "fractions.Fraction(0, 1), 'a', 1"


def test_names_suggest_values_where_there_is_no_hint() -> None:
    def guessed(key, count, on_done_callback, items, timeout):  # that is it
        return key, count, on_done_callback, items, timeout

    rows = arguments_of(guessed)
    assert rows is not None
    assert rows[0].text == "'a', 1, lambda *args, **kwargs: [1], [1, 2], 1.0"
    assert rows[1].text.startswith("'b', 2")


class Sample:
    @property
    def first(self) -> int:
        return 1

    def __getitem__(self, key: str) -> str:
        return key

    def __len__(self) -> int:
        return 0

    def __exit__(self, *failure: object) -> None: ...

    async def later(self) -> None: ...

    @staticmethod
    def alone(n: int) -> int:
        return n


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("first", "subject.first"),
        ("__getitem__", "subject['a']"),
        ("__len__", "len(subject)"),
        ("alone", "subject.alone(1)"),
        ("__init__", "subject()"),
        ("__exit__", "subject.__exit__(None, None, None)"),
    ],
)
def test_calls_are_written_as_people_write_them(name: str, text: str) -> None:
    call = calls_of(Sample, name)
    assert not isinstance(call, str)
    assert call.texts[0].text == text


def test_what_cannot_be_called_says_why() -> None:
    assert "coroutine" in str(calls_of(Sample, "later"))
    assert "not there" in str(calls_of(Sample, "gone"))


def test_arguments_that_were_seen_come_first() -> None:
    call = calls_of(Sample, "alone", [Text("42")])
    assert not isinstance(call, str)
    assert [one.text for one in call.texts[:2]] == ["subject.alone(42)", "subject.alone(1)"]


def test_a_module_is_its_own_subject() -> None:
    assert constructions_of(sys)[0] == Text("sys", frozenset({"import sys"}))


def test_factories_and_records_come_before_guesses(tmp_path: Path) -> None:
    factories = tmp_path / "factories.py"
    factories.write_text("FACTORIES = {'app:Cache': 'Cache(limit=2)'}", encoding="utf-8")
    recorded = tmp_path / "recorded.json"
    recorded.write_text('{"app:Cache.__init__": ["3"], "app:Cache.put": ["\'k\', 1"]}')
    known = known_inputs(factories, recorded)
    texts = [one.text for one in known.constructions("app:Cache", Text("Cache"))]
    assert texts == ["Cache(limit=2)", "Cache(3)"]
    assert known.calls("app:Cache", "put") == [Text("'k', 1")]


@pytest.mark.parametrize("source", ["FACTORIES = 3", "1 / 0"])
def test_a_file_of_factories_that_says_nothing_is_refused(tmp_path: Path, source: str) -> None:
    (tmp_path / "factories.py").write_text(source, encoding="utf-8")
    with pytest.raises(SetupError, match="factories"):
        known_inputs(tmp_path / "factories.py", None)


def test_pairs_come_before_triples_and_no_set_up_before_some() -> None:
    put = (Text("subject.put('a')"), Text("subject.put('b')"))
    pop = (Text("subject.pop()"),)
    found = list(trials(Ways(Text("Box()"), (put, pop), (put[0],))))
    sizes = [(len(one.calls), len(one.setup)) for one in found]
    assert sizes == sorted(sizes)
    assert found[0].calls == ("subject.put('a')", "subject.put('a')")
    assert len(set(found)) == len(found)


def test_a_block_is_not_left_more_often_than_it_was_entered() -> None:
    enter, leave = Text("subject.__enter__()"), Text("subject.__exit__(None, None, None)")
    found = list(trials(Ways(Text("Box()"), ((leave,),), (enter,))))
    assert found
    assert all(len(one.calls) <= len(one.setup) for one in found)
    # Where entering changes nothing, leaving is a call like others.
    assert len(list(trials(Ways(Text("Box()"), ((leave,),))))) > 0


def test_the_recorder_writes_what_tests_call_code_with(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "class Cache:\n def __init__(self, limit): self.d = {}\n"
        " def put(self, key, *more, ttl=1, **rest): self.d[key] = more\n"
        "def odd(thing): pass\n",
        encoding="utf-8",
    )
    (tmp_path / "test_app.py").write_text(
        "import app\ndef test_put():\n"
        " app.Cache(2).put('a', 1, ttl=5, x=None)\n app.odd(object())\n",
        encoding="utf-8",
    )
    out = tmp_path / "seen.json"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null",
         "-p", "cleveragents.hunt.inputs.recorder", f"--hunt-record={out}",
         f"--rootdir={tmp_path}", str(tmp_path)],
        env={"PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        check=True,
        timeout=60,
    )  # fmt: skip
    seen = json.loads(out.read_text(encoding="utf-8"))
    assert seen == {
        "app:Cache.__init__": ["2"],
        "app:Cache.put": ["'a', 1, ttl=5, x=None"],
    }


def test_classes_are_named_by_their_import() -> None:
    assert name_of(int) == Text("int")
    assert name_of(Entry).imports == frozenset({f"from {__name__} import Entry"})
