from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest

from cleveragents.domain.budget import Limit
from cleveragents.domain.conditions import Condition
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import RequestError
from cleveragents.domain.money import Money
from cleveragents.domain.plan import (
    ApplyMode,
    Budget,
    BudgetLimit,
    Capture,
    Check,
    CommandActor,
    ContextWish,
    Defaults,
    DeleteStep,
    EditStep,
    FailStep,
    ForEach,
    LlmActor,
    Node,
    NodeBudget,
    OnFailure,
    Plan,
    PrintStep,
    PythonActor,
    Recovery,
    ScriptedActor,
    SleepStep,
    SpendStep,
    WriteStep,
)
from cleveragents.domain.plan_collections import FrozenMap

LS = CommandActor(("ls",))


def node(name, **values):
    return Node(**{"name": name, "actor": LS, **values})


def refused(make):
    with pytest.raises(RequestError) as caught:
        make()
    assert caught.value.code == "CA1101"
    return caught.value


def facts_of(*nodes, **values):
    return refused(lambda: Plan(goal="x", nodes=nodes, **values)).facts


def test_plan_of_two_nodes_has_the_defaults_a_user_expects():
    plan = Plan(goal="Tidy up", nodes=(node("a"), node("b", needs=["a"])))
    assert (plan.at_once, plan.on_failure, plan.apply) == (8, OnFailure.STOP, ApplyMode.ASK)
    assert plan.graph.order() == ("a", "b")
    assert plan.nodes[1].needs == ("a",)
    assert plan.nodes[0].outputs is Capture.TEXT


def test_plan_is_a_value():
    plan = Plan(
        goal="x",
        nodes=(node("a", inputs={"deep": {"list": [1, {"x": None}]}}, when="inputs.deep == 1"),),
    )
    assert pickle.loads(pickle.dumps(plan)) == copy.deepcopy(plan) == plan
    assert hash(pickle.loads(pickle.dumps(plan))) == hash(plan)
    with pytest.raises(FrozenInstanceError):
        plan.goal = "y"
    deep = plan.nodes[0].inputs["deep"]
    assert deep == {"list": (1, {"x": None})}
    assert repr(deep) == "FrozenMap({'list': (1, FrozenMap({'x': None}))})"


def test_values_become_what_they_mean():
    given = node(
        "a",
        outputs="lines",
        for_each=["x"],
        when=True,
        budget={"max_usd": 0.1},
        check="pytest -q",
        context={"task": "t", "files": ["a.py"]},
        recovery={"cures": {"tool.crash": ["retry", "ask"]}, "times_max": {"retry": 2}},
        timeout_s=5,
        env={"A": "1"},
    )
    assert given.outputs is Capture.LINES
    assert given.for_each == ForEach(over=("x",))
    assert given.when == Condition("true") == node("a", when=Condition("true")).when
    assert given.budget == NodeBudget(max_usd=Money.of("0.1"))
    assert given.check == Check(("pytest", "-q"))
    assert given.context == ContextWish(task="t", files=("a.py",))
    assert given.recovery.cures[ErrorCategory.TOOL_CRASH] == (Action.RETRY, Action.ASK)
    assert given.recovery.times_max == {Action.RETRY: 2}
    assert given.timeout_s == 5.0


def test_text_of_a_command_is_split_unless_a_shell_reads_it():
    assert CommandActor("ruff check 'a b'").command == ("ruff", "check", "a b")
    assert CommandActor("ls | wc", shell=True).command == "ls | wc"
    assert CommandActor("echo ${HOME}", shell=True).command == "echo ${HOME}"


@pytest.mark.parametrize(
    ("command", "shell", "says"),
    [
        ((), False, "must start with the name of a program"),
        ("", False, "must be a program with its arguments as text"),
        ("''", False, "must start with the name of a program"),
        (("", "x"), False, "must start with the name of a program"),
        (("a", "b\0"), False, "`command[1]` must be an argument without NUL"),
        ("a\0b", True, "got 'a\\x00b'"),
        ("'open", False, "cannot be split into arguments"),
        (("a",), True, "must be one text when `shell` is true"),
        ("echo ${nodes.a.output}", True, "hand it over in `env`"),
        ("echo ${ inputs.a }", True, "hand it over in `env`"),
        (("a", "${b"), False, "must be closed by `}`"),
        (7, False, "got 7"),
        (("a", 7), False, "`command[1]`"),
        (" ", False, "must be a program with its arguments as text"),
    ],
)
def test_unsafe_command_is_refused(command, shell, says):
    assert says in refused(lambda: CommandActor(command, shell=shell)).message
    assert says in refused(lambda: Check(command, shell=shell)).message


def test_item_of_a_fan_out_is_refused_in_a_shell():
    """`${file}` would silently be a variable of the shell, which nobody has set."""
    shell = CommandActor("cat ${file}", shell=True)
    assert node("a", actor=shell).actor is shell
    error = refused(lambda: node("a", actor=shell, for_each=ForEach(over=[1], item_name="file")))
    assert list(error.facts) == ["actor"]
    error = refused(lambda: node("a", check=Check("cat ${item}", shell=True), for_each=[1]))
    assert list(error.facts) == ["check"]


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", "echo ${item}"),
        ("/bin/bash", "-ec", "echo ${item}"),
        ("bash", "-euo", "pipefail", "-c", "echo ${item}"),
        ("bash", "-ceuo", "pipefail", "echo ${item}"),
        ("bash", "--noprofile", "-c", "-x", "--", "echo ${item}"),
        ("dash", "+e", "-c", "${item}"),
        ("zsh", "-fc", "${item}"),
        ("env", "A=1", "timeout", "5", "sh", "-c", "${item}", "sh"),
        ("python3.13t", "-I", "-c", "print(${item})"),
        ("python", "-X", "dev", "-Icprint(${item})"),
        ("node", "-r", "x", "-e", "f(${item})"),
        ("nodejs", "--eval=f(${item})"),
        ("node", "--print", "-${item}"),
        ("perl", "-ne", "print", "-e", "${item}"),
        ("ruby", "-e", "${item}"),
        ("php", "-r", "${item}"),
    ],
    ids=" ".join,
)
def test_data_in_a_script_on_the_command_line_is_refused(argv):
    """A file named `$(rm -rf ~)` is data, and must never be read as code."""
    for make in (CommandActor, Check):
        error = refused(lambda make=make: make(argv))
        place = next(i for i, one in enumerate(argv) if "${item}" in one)
        assert list(error.facts) == [f"command[{place}]"]
        assert """[sh, -c, 'echo "$1"', sh, "${item}"]""" in error.message


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", 'echo "$1"', "sh", "${item}"),
        ("sh", "-c", "echo $${HOME}"),
        ("sh", "script.sh", "-c", "${item}"),
        ("bash", "-e", "--", "${item}"),
        ("python", "-c", "code", "-c", "${item}"),
        ("python", "-m", "pytest", "-c", "${item}"),
        ("python", "script.py", "${item}"),
        ("perl", "-e", "code", "--", "${item}"),
        ("perl", "-e1", "${item}"),
        ("node", "-e", "code", "${item}"),
        ("grep", "-c", "${item}", "file"),
        ("python",),
    ],
    ids=" ".join,
)
def test_data_may_be_an_argument_of_a_script(argv):
    assert CommandActor(argv).command == argv


def test_actor_must_be_of_a_known_kind():
    says = "There must be an actor with one of `command`, `python`, `scripted`, `llm`"
    for wrong in ({}, {"magic": 1}, {"command": "ls", "python": "a:b"}):
        assert says in refused(lambda wrong=wrong: node("a", actor=wrong)).message
    assert "got 7" in refused(lambda: node("a", actor=7)).message
    assert "`x` is not known here" in refused(lambda: node("a", actor={"llm": {}, "x": 1})).message


def test_each_kind_of_actor_can_be_made_of_its_fields():
    for given, made in [
        ({"command": "ls"}, LS),
        ({"python": "a.b:c.d"}, PythonActor("a.b:c.d")),
        ({"llm": {"model": "m", "prompt": "p"}}, LlmActor("m", "p")),
        ({"scripted": [{"print": "hi"}]}, ScriptedActor((PrintStep("hi"),))),
    ]:
        assert node("a", actor=given).actor == made


def test_steps_of_a_script_are_checked():
    steps = (
        WriteStep("a.py", "text"),
        EditStep("a.py", "old", ""),
        DeleteStep("b.py"),
        FailStep("boom", attempts=1),
        SpendStep("0.25"),
        SleepStep(1),
    )
    assert ScriptedActor(steps).steps == steps
    assert FailStep("boom").category is ErrorCategory.TOOL_CRASH
    assert "got '../x'" in refused(lambda: WriteStep("../x", "")).message
    assert "must be one of" in refused(lambda: FailStep("x", category="bad")).message
    assert "`category`" in refused(lambda: FailStep("x", category=["tool.crash"])).message
    error = refused(lambda: ScriptedActor([{"write": "a.py"}, {"prnt": "x"}]))
    assert error.facts["scripted[0]"] == "`text` is missing: its whole content"
    assert "did you mean `print`?" in error.facts["scripted[1]"]


@pytest.mark.parametrize("function", ["a", "a.b", "a:", ":b", "a:b c", "a-b:c", "1:b", "a:b\n"])
def test_function_must_be_named_by_module_and_name(function):
    assert "`package.module:function`" in refused(lambda: PythonActor(function)).message


def test_prompt_is_never_shown():
    """A prompt may hold a secret, and an error may end in a log."""
    error = refused(lambda: LlmActor("m", "secret " * 200_000))
    assert "secret" not in str(error.to_dict())
    assert "got str" in error.message
    assert "secret" not in refused(lambda: node("a", env={"A": "secret\0"})).message


@pytest.mark.parametrize(
    "name", ["", "A", "a b", "-a", ".a", "ä", "a\n", "a" * 101, "a.output", "a.output.b", 7, None]
)
def test_name_that_breaks_its_rule_is_refused(name):
    assert list(refused(lambda: node(name)).facts) == ["name"]


@pytest.mark.parametrize("name", ["a", "0", "a.b", "a_b-c.0", "output", "a.outputs", "output.a"])
def test_name_may_have_dots_and_dashes(name):
    plan = Plan(
        goal="x",
        nodes=(node(name), node("z", needs=[name], inputs={"x": f"${{nodes.{name}.output}}"})),
    )
    assert plan.nodes[0].name == name


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": -1}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"timeout_s": 10**400}, "timeout_s"),
        ({"timeout_s": True}, "timeout_s"),
        ({"timeout_s": "5"}, "timeout_s"),
        ({"attempts_max": 0}, "attempts_max"),
        ({"attempts_max": 2.0}, "attempts_max"),
        ({"attempts_max": 101}, "attempts_max"),
        ({"network": "no"}, "network"),
        ({"on_failure": "halt"}, "on_failure"),
        ({"writes": ["/etc/*"]}, "writes[0]"),
        ({"writes": ["a/../../b"]}, "writes[0]"),
        ({"writes": ["src/"]}, "writes[0]"),
        ({"writes": [".git/config"]}, "writes[0]"),
        ({"writes": [7]}, "writes[0]"),
        ({"writes": "src/**"}, "writes"),
        ({"folder": "/tmp"}, "folder"),
        ({"folder": ".."}, "folder"),
        ({"folder": "..\\b"}, "folder"),
        ({"env": {"A-B": "x"}}, "env.A-B"),
        ({"env": {"A": 5}}, "env.A"),
        ({"env": ["A"]}, "env"),
        ({"env": {f"A{number}": "" for number in range(1001)}}, "env"),
        ({"tools": ["read", "read"]}, "tools[1]"),
        ({"tools": [""]}, "tools[0]"),
        ({"tools": ["x"] * 1001}, "tools"),
        ({"outputs": "xml"}, "outputs"),
        ({"outputs": ["a b"]}, "outputs[0]"),
        ({"inputs": {"a-b": 1}}, "inputs.a-b"),
        ({"inputs": {"a": object()}}, "inputs.a"),
        ({"inputs": {"a": float("inf")}}, "inputs.a"),
        ({"inputs": {"a": {1: 2}}}, "inputs.a"),
        ({"inputs": {7: 2}}, "inputs[7]"),
        ({"for_each": 7}, "for_each.over"),
        ({"for_each": "text"}, "for_each.over"),
        ({"for_each": "${nodes.a.output} x"}, "for_each.over"),
        ({"for_each": {"over": [1, 2], "items_max": 1}}, "for_each.over"),
        ({"for_each": {"over": [1], "as": "nodes"}}, "for_each.as"),
        ({"for_each": {"over": [1], "as": "a-b"}}, "for_each.as"),
        ({"for_each": {}}, "for_each"),
        ({"when": 7}, "when"),
        ({"when": "f(x)"}, "when"),
        ({"budget": {"max_usd": -1}}, "budget.max_usd"),
        ({"budget": {"max_usd": None}}, "budget.max_usd"),
        ({"budget": 5}, "budget"),
        ({"context": {"tokens_max": 0}}, "context.tokens_max"),
        ({"context": {"file": []}}, "context.file"),
        ({"recovery": {"cures": {"tool.boom": ["ask"]}}}, "recovery.cures.tool.boom"),
        ({"recovery": {"cures": {"internal.bug": ["ask"]}}}, "recovery.cures.internal.bug"),
        ({"recovery": {"cures": {"tool.crash": ["ask", "retry"]}}}, "recovery.cures.tool.crash"),
        ({"recovery": {"cures": {"tool.crash": 7}}}, "recovery.cures.tool.crash"),
        ({"recovery": {"times_max": {"ask": 1}}}, "recovery.times_max.ask"),
        ({"recovery": {"times_max": {"retry": -1}}}, "recovery.times_max.retry"),
        ({"check": {"command": "x", "timeout_s": 0}}, "check.timeout_s"),
    ],
)
def test_field_that_breaks_its_rule_is_refused_with_its_place(values, where):
    assert list(refused(lambda: node("a", **values)).facts) == [where]


def test_value_may_not_be_nested_without_end():
    deep = []
    deep.append(deep)
    assert "nested 16 deep" in refused(lambda: node("a", inputs={"x": deep})).message


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"inputs": {"a": "${inputs.b}"}}, "inputs are not known there yet"),
        ({"for_each": "${inputs.b}"}, "inputs are not known there yet"),
        ({"for_each": ["${item}"]}, "is not known in `for_each`, which knows `nodes`, `plan`"),
        ({"when": "item == 1"}, "is not known in `when`"),
        ({"when": "True"}, "is not known in `when`"),
        ({"env": {"A": "${input.x}"}}, "did you mean `inputs`?"),
        ({"env": {"A": "${inputs.nmae}"}, "inputs": {"name": 1}}, "did you mean `name`?"),
        ({"env": {"A": "${inputs}"}}, "is none of the node's inputs"),
        ({"env": {"A": "${plan.x}"}}, "`plan.goal` and `plan.name`"),
        ({"env": {"A": "${HOME}"}}, "write `$${` for a plain `${`"),
        ({"actor": CommandActor(("echo", "${item}"))}, "is not known in `actor`"),
    ],
)
def test_template_uses_what_its_node_has(values, says):
    assert says in refused(lambda: node("a", **values)).message


def test_template_may_use_inputs_items_and_the_plan():
    used = node(
        "a",
        for_each={"over": {"k": 1}, "as": "part"},
        inputs={"x": ["${part}", "${plan.goal}"]},
        when="part != 2 and inputs.x != []",
        env={"A": "${inputs.x} ${part.key} $${HOME}"},
    )
    assert used.for_each.over == FrozenMap({"k": 1})


def test_unknown_need_is_refused_with_a_close_name():
    facts = facts_of(node("test"), node("b", needs=["tets", "zzz"]))
    assert "did you mean `test`?" in facts["nodes.b.needs[0]"]
    assert "no node of this plan" in facts["nodes.b.needs[1]"]


def test_loop_is_named():
    facts = facts_of(node("a", needs=["b"]), node("b", needs=["c"]), node("c", needs=["a"]))
    assert facts == {"nodes.a.needs": "Nodes need each other in a loop: a → b → c → a"}
    facts = facts_of(node("a", needs=["a"]))
    assert facts == {"nodes.a.needs": "Nodes need each other in a loop: a → a"}


def test_two_nodes_of_one_name_are_refused():
    assert facts_of(node("a"), node("a")) == {"nodes[1].name": "Two nodes are called `a`"}


def test_node_without_an_actor_needs_a_default():
    bare = Node(name="a")
    assert "has no actor" in facts_of(bare)["nodes.a"]
    plan = Plan(goal="x", nodes=(bare,), defaults=Defaults(actor=LS))
    assert plan.resolved()["a"].actor == LS


def uses(reference, **values):
    return node("z", inputs={"x": f"${{nodes.{reference}}}"}, **values)


def test_reference_must_lead_to_a_node_upstream():
    assert (
        "did you mean `scan`?"
        in facts_of(node("scan"), uses("scna.output", needs=["scan"]))["nodes.z.inputs.x"]
    )
    assert "add it to `needs` of `z`" in facts_of(node("a"), uses("a.output"))["nodes.z.inputs.x"]
    assert "own output" in facts_of(uses("z.output"))["nodes.z.inputs.x"]
    far = uses("a.output", needs=["b"], env={"A": "${nodes.a.output}"})
    plan = Plan(goal="x", nodes=(node("a"), node("b", needs=["a"]), far))
    assert plan.graph.upstream("z") == ("a", "b")


def test_condition_must_ask_about_a_node_upstream():
    asks = node("z", when="nodes.a.output == 1")
    assert list(facts_of(node("a"), asks)) == ["nodes.z.when"]


def test_loop_is_told_once_and_not_again_for_each_reference():
    facts = facts_of(node("a", needs=["z"]), uses("a.output", needs=["a"]))
    assert list(facts) == ["nodes.a.needs"]


@pytest.mark.parametrize(
    ("giver", "reference", "says"),
    [
        ({}, "a.output.x", "is text; let it have `outputs: json`"),
        ({"outputs": "lines"}, "a.output.x", "is a list of lines"),
        ({"outputs": "lines"}, "a.output.0.1", "is a list of lines"),
        ({"outputs": ["count"]}, "a.output.cuont", "did you mean `count`?"),
        ({"outputs": ["count"], "for_each": [1]}, "a.output.0.cuont", "did you mean `count`?"),
        ({"for_each": [1]}, "a.output.0.x", "is text"),
    ],
)
def test_output_must_have_what_is_asked_of_it(giver, reference, says):
    facts = facts_of(node("a", **giver), uses(reference, needs=["a"]))
    assert says in facts["nodes.z.inputs.x"]


@pytest.mark.parametrize(
    ("giver", "reference"),
    [
        ({"outputs": "json"}, "a.output.x.y"),
        ({"outputs": "lines"}, "a.output.0"),
        ({"outputs": ["count"]}, "a.output.count.deeper"),
        ({"outputs": ["count"]}, "a.output"),
        ({"for_each": [1]}, "a.output.0"),
        ({"actor": PythonActor("m:f")}, "a.output.x"),
    ],
)
def test_output_that_may_be_there_is_accepted(giver, reference):
    assert Plan(goal="x", nodes=(node("a", **giver), uses(reference, needs=["a"])))


def test_fan_out_over_text_is_refused():
    over = node("z", needs=["a"], for_each="${nodes.a.output}")
    assert "a fan-out needs a list" in facts_of(node("a"), over)["nodes.z.for_each.over"]
    assert Plan(goal="x", nodes=(node("a", for_each=[1]), over))


def test_templates_stand_in_nodes_alone():
    error = refused(lambda: Defaults(env={"A": "${plan.goal}"}))
    assert "must stand in a node" in error.facts["env.A"]


@pytest.mark.parametrize("nodes", [(), {}, 7, None, [node("a")] * 10_001])
def test_plan_needs_nodes_and_not_too_many(nodes):
    assert list(refused(lambda: Plan(goal="x", nodes=nodes)).facts) == ["nodes"]


def test_nodes_may_be_a_mapping_or_a_list():
    data = {"a": {"actor": {"command": "ls"}}}
    listed = [{"name": "a", "actor": {"command": "ls"}}]
    assert Plan(goal="x", nodes=data) == Plan(goal="x", nodes=listed)
    facts = refused(lambda: Plan(goal="x", nodes={"A": {}, "b": 7, "c": {"name": "c"}})).facts
    assert "must be a name" in facts["nodes.A"]
    assert "must be a mapping" in facts["nodes.b"]
    assert "the key of the mapping is the name" in facts["nodes.c.name"]


def test_all_mistakes_are_told_together_up_to_twenty():
    wrong = {f"n{number}": {"timeout_s": 0} for number in range(60)}
    error = refused(lambda: Plan(goal="x", nodes=wrong, defaults=Defaults(actor=LS)))
    assert error.message.startswith("`Plan` breaks 60 rules: `timeout_s` must be")
    assert len(error.facts) == 21
    assert error.facts["more"] == "40 further mistakes"


def test_reading_stops_when_nobody_could_want_to_hear_more():
    wrong = {f"n{number}": {"timeout_s": 0} for number in range(5_000)}
    assert "breaks 100 rules" in refused(lambda: Plan(goal="x", nodes=wrong)).message


def test_mistake_of_a_whole_record_is_told_under_its_name():
    error = refused(lambda: Node(name="a", for_each={"as": "x"}))
    assert error.facts["for_each"].startswith("`over` is missing: the items")
    assert list(refused(lambda: ForEach(over=[1, 2], items_max=1)).facts) == ["over"]
    assert error.message.startswith("`Node` breaks a rule: ")


def test_mistake_is_told_in_bounded_words():
    keys = {f"key{number}": 1 for number in range(10_000)}
    assert len(refused(lambda: node("a", actor=keys)).message) < 2_200


def test_mistakes_of_one_place_are_told_side_by_side():
    error = refused(lambda: node("a", inputs={"x": "${inputs.a} ${inputs.b}"}))
    assert error.facts["inputs.x"].count("not known there yet") == 2


def test_long_values_are_shown_in_part():
    assert len(refused(lambda: node("a", when="x" * 900 + "(")).message) < 1100
    assert refused(lambda: Budget(max_usd="9" * 500)).message.endswith("…")
    assert "got true" in refused(lambda: Budget(max_usd=True)).message
    assert "got a list of 2" in refused(lambda: Budget(max_usd=[1, 2])).message
    assert "got a mapping" in refused(lambda: Plan(goal={}, nodes=(node("a"),))).message


def test_budget_becomes_limits_of_the_books():
    budget = Budget(
        max_usd=5,
        limits=[{"kind": "actor", "max_usd": "0.5"}, {"kind": "day", "max_usd": 1, "hard": False}],
    )
    assert budget.limits_of("p-1") == (
        Limit("plan", 5, name="p-1"),
        Limit("actor", "0.5"),
        Limit("day", 1, hard=False),
    )
    assert Budget().limits_of("p-1") == ()
    warned = BudgetLimit(kind="model", max_usd=1, name="m", warn_at=[0.5])
    assert warned.limit() == Limit("model", 1, name="m", warn_at=(0.5,))
    assert "must be one of" in refused(lambda: BudgetLimit(kind="week", max_usd=1)).message


def test_node_takes_from_the_defaults_what_it_does_not_say():
    plan = Plan(
        goal="x",
        on_failure="continue",
        defaults=Defaults(timeout_s=5, check="true", env={"A": "1", "B": "1"}, network=True),
        nodes=(
            node("a"),
            node("b", timeout_s=7, env={"B": "2"}, network=False, on_failure="stop"),
        ),
    )
    a, b = plan.resolved().values()
    assert (a.timeout_s, a.attempts_max, a.network) == (5, 3, True)
    assert (a.on_failure, a.check) == (OnFailure.CONTINUE, Check(("true",)))
    assert (b.timeout_s, b.network, b.on_failure) == (7, False, OnFailure.STOP)
    assert b.env == {"A": "1", "B": "2"}
    assert node("a", on_failure=None).on_failure is None


def test_failure_in_defaults_wins_over_that_of_the_plan():
    plan = Plan(goal="x", defaults=Defaults(on_failure="continue"), nodes=(node("a"),))
    assert plan.resolved()["a"].on_failure is OnFailure.CONTINUE


def test_recovery_knows_the_words_of_the_books():
    usual = Recovery(cures={ErrorCategory.CHECK_FAILED: (Action.FEEDBACK, Action.REPLAN)})
    assert usual.cures == {"plan.check_failed": ("retry_with_feedback", "replan")}


@pytest.mark.parametrize(
    "command",
    ["true && false", "true&&false", "a | b", "a || exit 1", "echo x > f", "a; b", "(a)", "a &"],
)
def test_words_that_only_a_shell_understands_are_refused_without_one(command):
    """Split into arguments, `true && false` would be a check that always passes."""
    with pytest.raises(RequestError, match="only a shell understands"):
        CommandActor(command)
    assert CommandActor(command, shell=True).command == command


@pytest.mark.parametrize("command", ["grep 'a|b' f", 'echo "x && y"', "echo a#b", "ls -l"])
def test_quoted_or_plain_words_are_no_shell_words(command):
    assert isinstance(CommandActor(command).command, tuple)


def test_only_a_script_without_files_is_known_to_leave_the_tree_alone():
    talk = node("a", actor=ScriptedActor((PrintStep("x"), SpendStep(1))))
    assert not Plan(goal="x", nodes=(talk,)).may_touch_files
    for other in (
        node("b"),
        node("b", actor=PythonActor("a:b")),
        node("b", actor=ScriptedActor((PrintStep("x"), DeleteStep("f")))),
        node("b", actor=talk.actor, check=Check("ls")),
    ):
        assert Plan(goal="x", nodes=(talk, other)).may_touch_files
    assert Plan(goal="x", nodes=(talk,), defaults=Defaults(check=Check("ls"))).may_touch_files
    assert Plan(goal="x", nodes=(Node(name="a"),), defaults=Defaults(actor=LS)).may_touch_files
