from __future__ import annotations

import asyncio
import sys
import threading
from enum import StrEnum
from pathlib import Path

import pytest

from cleveragents.actors.building import ActorParts, build_actor, check_actor
from cleveragents.application.attempts import ActorResult
from cleveragents.domain.errors import SandboxError, SetupError
from cleveragents.domain.plan import Node, PythonActor
from cleveragents.domain.stop_signal import Stopped, StopSignal

MODULE = "unit.actors.test_python_actor"


class Colour(StrEnum):
    RED = "red"


def rename(attempt):
    attempt.files.write("made.txt", b"by python", tool_call="t-1")
    return {"seen": attempt.inputs["path"], "colour": Colour.RED, "pair": (1, 2.5, None, True)}


def summing(_attempt):
    return ActorResult({"a": 1}, summary="Summed up", facts={"files": 3})


async def waiting(attempt):
    await asyncio.sleep(0)
    return attempt.instance


async def endless(attempt):
    attempt.log("begun")
    await asyncio.Event().wait()


def failing(_attempt):
    raise LookupError("the user's own")


def two(_attempt, _other):
    return None


def optional(_attempt, _other=1, *_more, **_options):
    return "taken"


class Actors:
    @staticmethod
    def method(attempt):
        return attempt.attempt


def actor_node(name, **options):
    return Node(name="work", actor=PythonActor(f"{MODULE}:{name}"), **options)


def run(world, it, **given):
    with world.attempt(it, **given) as attempt:
        return build_actor(it.actor).run(attempt)


def test_function_gets_the_attempt_and_returns_the_output(world):
    result = run(world, actor_node("rename", inputs={"path": "src"}))
    assert result.output == {"seen": "src", "colour": "red", "pair": [1, 2.5, None, True]}
    assert type(result.output["colour"]) is str
    assert [(entry.path, entry.tool_call) for entry in world.entries()] == [("made.txt", "t-1")]


def test_function_may_return_a_whole_result(world):
    result = run(world, actor_node("summing"))
    assert (result.output, result.summary, result.facts) == ({"a": 1}, "Summed up", {"files": 3})


@pytest.mark.parametrize(
    ("name", "output"), [("Actors.method", 1), ("optional", "taken"), ("waiting", "work")]
)
def test_functions_of_many_shapes_are_called(world, name, output):
    assert run(world, actor_node(name)).output == output


def test_stopped_attempt_is_not_begun(world):
    stop = StopSignal()
    stop.stop("no more")
    with pytest.raises(Stopped, match="no more"):
        run(world, actor_node("rename"), stop=stop)


def test_stop_cancels_an_async_function(world):
    stop = StopSignal()
    begun = threading.Event()
    stopper = threading.Thread(target=lambda: begun.wait(10) and stop.stop("enough"))
    stopper.start()
    with pytest.raises(Stopped, match="enough"):
        run(world, actor_node("endless"), stop=stop, log=lambda _: begun.set())
    stopper.join()


def test_errors_of_the_function_come_as_they_are(world):
    with pytest.raises(LookupError, match="the user's own"):
        run(world, actor_node("failing"))


UNFIT = {
    "path": (lambda: Path("x"), "got a `PosixPath`"),
    "nested": (lambda: {"a": [1, {2}]}, "got a `set` at `a[1]`"),
    "nan": (lambda: float("nan"), "got nan"),
    "keys": (lambda: {"a": {1: 2}}, "keys that are no texts at `a`"),
}


def deep():
    value = []
    for _ in range(200):
        value = [value]
    return value


def unfit(attempt):
    return deep() if attempt.goal == "deep" else UNFIT[attempt.goal][0]()


@pytest.mark.parametrize("name", UNFIT)
def test_output_that_is_no_json_is_refused_with_its_place(world, name):
    with pytest.raises(SandboxError) as caught:
        run(world, actor_node("unfit"), goal=name)
    assert caught.value.code == "CA5204"
    assert UNFIT[name][1] in caught.value.message


def test_endless_output_is_refused(world):
    with pytest.raises(SandboxError, match="at most 100 levels deep"):
        run(world, actor_node("unfit"), goal="deep")


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("no_such_module_here:run", "ModuleNotFoundError"),
        (f"{MODULE}:nothing", "AttributeError"),
        (f"{MODULE}:two", "must take one argument, the attempt (missing"),
        (f"{MODULE}:MODULE", "must take one argument, the attempt ("),
    ],
    ids=["module", "name", "signature", "no-function"],
)
def test_function_that_cannot_be_called_is_found_before_the_run(function, says):
    with pytest.raises(SetupError) as caught:
        check_actor(PythonActor(function))
    assert caught.value.code == "CA5205"
    assert says in caught.value.message


def test_module_that_breaks_while_it_is_imported_is_found_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "breaks_at_import.py").write_text("raise TypeError('at import')")
    with pytest.raises(SetupError, match="TypeError: at import"):
        check_actor(PythonActor("breaks_at_import:run"), ActorParts(modules=tmp_path))


def test_functions_are_found_beside_the_plan_behind_all_others(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "beside_the_plan.py").write_text("def run(attempt): ...")
    for _ in range(2):
        check_actor(PythonActor("beside_the_plan:run"), ActorParts(modules=tmp_path))
    assert sys.path[-1] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1
