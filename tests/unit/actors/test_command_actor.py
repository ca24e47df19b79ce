from __future__ import annotations

import json
import threading

import pytest

from cleveragents.actors.building import ActorParts, build_actor
from cleveragents.actors.line_log import LINES_MAX
from cleveragents.application.services.error_classification import describe
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SandboxError, SetupError
from cleveragents.domain.money import Money
from cleveragents.domain.plan import Capture, CommandActor, Node
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.domain.usage import Usage


def node(command, *, shell=True, **options):
    return Node(name="work", actor=CommandActor(command, shell=shell), **options)


def run(world, it, parts=None, **given):
    with world.attempt(it, **given) as attempt:
        return build_actor(it.actor, parts or ActorParts()).run(attempt)


def failure(world, it, **given):
    with pytest.raises(SandboxError) as caught:
        run(world, it, **given)
    return caught.value


def test_command_runs_its_arguments_without_a_shell(world):
    assert run(world, node(("echo", "$HOME", "a  b"), shell=False)).output == "$HOME a  b"


def test_command_changes_are_in_the_changeset(world):
    run(world, node("echo new > made.txt"))
    assert [entry.path for entry in world.entries()] == ["made.txt"]


def test_command_gets_folder_and_variables_of_its_node(world):
    it = node('echo "$(basename "$PWD") $KEY"', folder="src", env={"KEY": "value"})
    assert run(world, it).output == "src value"


def test_inputs_come_as_json_on_standard_input(world):
    it = node("cat", inputs={"text": "caf\u00e9", "numbers": [1, 2]}, outputs="json")
    assert run(world, it).output == {"text": "caf\u00e9", "numbers": [1, 2]}


def test_without_inputs_standard_input_is_empty(world):
    """Agents take what they find there for a part of the prompt."""
    assert run(world, node("cat")).output == ""


def test_command_is_told_who_it_is_by_variables(world):
    names = ("PLAN", "NODE", "INSTANCE", "ATTEMPT", "GOAL", "FEEDBACK", "INPUTS")
    text = "; ".join(f'echo "$CLEVERAGENTS_{name}"' for name in names)
    it = node(text, inputs={"a": 1}, outputs="lines")
    out = run(world, it, instance="work[2]", attempt=3, feedback=("red\0", "still red")).output
    assert out == ["p-1", "work", "work[2]", "3", "Tidy up", "red?", "", "still red", '{"a": 1}']


def test_inputs_too_long_for_a_variable_come_on_standard_input_alone(world):
    it = node('echo "[$CLEVERAGENTS_INPUTS]" && wc -c', inputs={"a": "x" * 70_000}, outputs="lines")
    assert run(world, it).output == ["[]", "70009"]


def test_of_long_feedback_the_newest_is_kept(world):
    it = node('echo "${#CLEVERAGENTS_FEEDBACK}"; echo "$CLEVERAGENTS_FEEDBACK" | tail -c 5')
    assert run(world, it, feedback=("x" * 90_000, "last")).output == "64000\nlast"


@pytest.mark.parametrize(
    ("printed", "outputs", "expected"),
    [
        ("a\\nb\\n\\n", "text", "a\nb"),
        ("a\\r\\nb\\r\\n", "lines", ["a", "b"]),
        ("", "lines", []),
        ("[1, null]", "json", [1, None]),
        ('{"a": 1, "b": 2}', ("b",), {"b": 2}),
    ],
    ids=["text", "windows-lines", "no-lines", "json", "keys"],
)
def test_output_is_captured_as_the_node_promises(world, printed, outputs, expected):
    assert run(world, node(f"printf '{printed}'", outputs=outputs)).output == expected


@pytest.mark.parametrize(
    ("printed", "outputs", "says"),
    [
        ("{\\n  oops", Capture.JSON, "line 2, column 3, near 'oops'"),
        ("NaN", Capture.JSON, "`NaN` is no JSON"),
        ("[" * 50_000, Capture.JSON, "nested too deeply"),
        ("[]", ("a",), "with `a`, got a `list`"),
        ('{"b": 1}', ("a", "b"), "with `a`, `b`, missing `a`"),
    ],
    ids=["place", "nan", "deep", "no-object", "missing-key"],
)
def test_output_that_breaks_the_promise_fails_with_the_place(world, printed, outputs, says):
    error = failure(world, node(f"printf '{printed}'", outputs=outputs))
    assert error.code == "CA5204"
    assert says in error.message
    assert category(error) is ErrorCategory.CHECK_FAILED


def category(error):
    """What the runner records: the error's own word on itself."""
    return describe("p", error, {"category": error.facts["category"]}, at=0.0).category


def test_failed_command_tells_code_and_last_lines(world):
    """The fact `output` is what the next attempt hears of it."""
    error = failure(world, node("seq 30 >&2; echo 'token=hunter2hunter2' >&2; exit 3"))
    assert (error.code, error.facts["exit_code"], error.facts["signal"]) == ("CA5201", 3, None)
    assert error.facts["output"].splitlines()[0] == "12"
    assert error.facts["output"].splitlines()[-1] == "token=[redacted]"
    assert error.message.endswith("exit code 3: token=[redacted]")
    assert category(error) is ErrorCategory.TOOL_CRASH


def test_failed_command_that_was_silent_is_told_by_its_code(world):
    assert failure(world, node("false", shell=False)).message == (
        "The command 'false' failed with exit code 1"
    )


def test_long_last_lines_are_cut_at_their_beginning(world):
    error = failure(world, node("printf '%05000d end' 0; exit 1"))
    assert len(error.facts["output"]) == 2000
    assert error.facts["output"].startswith("\u2026")
    assert error.facts["output"].endswith("0 end")


def test_killed_command_tells_its_signal(world):
    error = failure(world, node("kill -9 $$"))
    assert (error.code, error.facts["signal"]) == ("CA5201", 9)


def test_exit_code_75_is_a_fault_that_passes(world):
    assert category(failure(world, node("exit 75"))) is ErrorCategory.TOOL_TRANSIENT


def test_time_limit_is_a_timeout(world):
    error = failure(world, node("echo begun; sleep 60", timeout_s=0.3))
    assert (error.code, error.facts["output"]) == ("CA5005", "begun")
    assert category(error) is ErrorCategory.TOOL_TIMEOUT


def test_flood_of_output_is_ended(world):
    error = failure(world, node("yes"))
    assert (error.code, category(error)) == ("CA5005", ErrorCategory.TOOL_CRASH)
    assert "10000000 bytes of output" in error.message


def test_cancelled_command_is_stopped_not_failed(world):
    stop = StopSignal()
    begun = threading.Event()

    def log(line):
        if line == "begun":
            begun.set()
            stop.stop("enough")

    with pytest.raises(Stopped, match="enough"):
        run(world, node("echo begun; sleep 60"), stop=stop, log=log)
    assert begun.is_set()


def test_lines_are_logged_without_secrets(world):
    run(world, node("echo one; echo api_key=sk-abcdefgh12345678 >&2"))
    assert sorted(world.logged) == ["api_key=[redacted]", "one"]


def test_last_line_is_logged_also_without_its_end(world):
    run(world, node("echo one; printf end"))
    assert world.logged == ["one", "end"]


def test_log_is_bounded(world):
    run(world, node(f"seq {LINES_MAX + 50}"))
    assert len(world.logged) == LINES_MAX + 1
    assert world.logged[-1].startswith("[more than 1000 lines")


def test_line_without_end_is_logged_in_pieces(world):
    run(world, node("head -c 200000 /dev/zero | tr '\\0' x"))
    assert 1 < len(world.logged) < 6
    assert all(len(line) == 2000 for line in world.logged)


# -- the cost of foreign agents ------------------------------------------------------------

CLAUDE = {
    "type": "result",
    "result": "done",
    "total_cost_usd": 0.0123,
    "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5},
    "modelUsage": {"claude-sonnet-4-5": {"costUSD": 0.0123}},
}
CODEX = {"type": "turn.completed", "usage": {"input_tokens": 100, "output_tokens": 20}}


def printing(*documents, then=""):
    lines = " ".join(f"'{json.dumps(one)}'" for one in documents)
    return node(f"printf '%s\\n' {lines}; {then}")


def test_stated_cost_of_an_agent_is_recorded(world):
    result = run(world, printing(CLAUDE))
    usage = Usage(input_tokens=100, output_tokens=5, cache_read_tokens=90)
    assert world.purse.bills == [(Money.of("0.0123"), usage, "claude-sonnet-4-5")]
    assert result.facts["cost"] == "0.0123 USD"


def test_cost_is_recorded_also_when_the_agent_fails(world):
    failure(world, printing(CLAUDE, then="exit 1"))
    assert [bill[0] for bill in world.purse.bills] == [Money.of("0.0123")]


def test_usage_is_priced_when_its_model_is_known(world):
    parts = ActorParts(price=lambda _, usage: Money.of(usage.input_tokens / 1000))
    run(world, printing({"model": "m", **CODEX}), parts)
    assert [(str(cost), model) for cost, _, model in world.purse.bills] == [("0.10 USD", "m")]


def unknown(model, _):
    raise SetupError(f"no price for {model}", code="CA1004")


@pytest.mark.parametrize("price", [None, unknown], ids=["no-prices", "unknown-model"])
def test_unknown_price_is_told_and_never_zero(world, price):
    result = run(world, printing({"model": "m", **CODEX}), ActorParts(price=price))
    assert world.purse.bills == []
    assert result.facts["unpriced"] == ("120 tokens of m",)
    assert "cost" not in result.facts
    assert any("120 tokens of m were used; their price is not known" in x for x in world.logged)


def test_usage_without_a_model_is_told(world):
    result = run(world, printing(CODEX), ActorParts(price=unknown))
    assert result.facts["unpriced"] == ("120 tokens of a model without a name",)
