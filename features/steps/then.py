"""What a user can observe."""

from __future__ import annotations

from behave import then

from cleveragents import Action, BudgetExceeded, Reservation
from world import PLAN


@then("the request is not made")
def the_request_is_not_made(context):
    assert isinstance(context.world.outcomes[0], BudgetExceeded)


@then("the request is made")
def the_request_is_made(context):
    assert isinstance(context.world.outcomes[0], Reservation)


@then("one request is made and one is not")
def one_request_is_made(context):
    for world in context.world.rounds:
        kinds = sorted(type(one).__name__ for one in world.outcomes)
        assert kinds == ["BudgetExceeded", "Reservation"], kinds


@then(
    "the refusal has the code {code} and names {limit:Money} USD as limit"
    " and {spent:Money} USD as spent"
)
def the_refusal_names(context, code, limit, spent):
    refusal = context.world.outcomes[0]
    assert refusal.code == code
    assert (refusal.facts["limit"], refusal.facts["spent"]) == (limit, spent), refusal.facts


@then("{amount:Money} USD is spent")
def is_spent(context, amount):
    for world in context.world.rounds or [context.world]:
        spent = world.tracker.balance("plan", PLAN).spent
        assert spent == amount, spent


@then("{amount:Money} USD is left")
def is_left(context, amount):
    assert context.world.tracker.balance("plan", PLAN).remaining == amount


@then("the user is told {code}")
def the_user_is_told(context, code):
    codes = [one.code for one in context.world.notices]
    assert codes == [code], codes


def report_of(context, name):
    return next(one for one in context.world.outcomes[-1].reports if one.name == name)


@then('the context has what "{name}" found')
def the_context_has(context, name):
    sources = {
        origin.source
        for passage in context.world.outcomes[-1].fragments
        for origin in passage.origins
    }
    assert name in sources, sources


@then('"{name}" is said to have failed')
def is_said_to_have_failed(context, name):
    assert report_of(context, name).status == "failed"


@then('"{name}" is said to be skipped')
def is_said_to_be_skipped(context, name):
    report = report_of(context, name)
    assert report.status == "skipped"
    assert report.retry_after_s > 0


@then('"{name}" is said to be fine')
def is_said_to_be_fine(context, name):
    assert report_of(context, name).status == "ok"


@then('"{name}" is paused with {failures:d} failures')
def is_paused_with(context, name, failures):
    for world in context.world.rounds:
        (state,) = world.breaker.snapshot()
        assert (state.name, state.status, state.failures) == (name, "open", failures), state


@then("{number:d} of them may try it")
def of_them_may_try_it(context, number):
    for world in context.world.rounds:
        admitted = [one for one in world.outcomes if one is not None]
        assert len(admitted) == number, admitted


@then('the error is kept as number {number:d} with the category "{category}"')
def the_error_is_kept(context, number, category):
    kept = context.world.recovery.history(PLAN).records
    assert [(one.seq, str(one.category)) for one in kept] == [(number, category)]


@then("the decision is not to try again")
def the_decision_is_not_to_try_again(context):
    decision = context.world.outcomes[1]
    assert decision.action not in {Action.RETRY, Action.FEEDBACK}, decision


@then("the decision is to try again after at least {seconds:d} seconds")
def the_decision_is_to_try_again(context, seconds):
    decision = context.world.outcomes[1]
    assert decision.action is Action.RETRY, decision
    assert decision.delay_s >= seconds, decision


@then('no record holds the key "{key}"')
def no_record_holds(context, key):
    history = context.world.recovery.history(PLAN)
    assert history.count == 1
    assert key not in repr(history)


@then("{number:d} errors are kept, numbered without a gap")
def errors_are_kept(context, number):
    for world in context.world.rounds:
        kept = world.recovery.history(PLAN).records
        assert [one.seq for one in kept] == list(range(1, number + 1))


@then('it is told "{message}"')
def it_is_told(context, message):
    assert str(context.world.outcomes[0]) == message


@then("the change is refused with the code {code}")
def the_change_is_refused(context, code):
    assert context.world.outcomes[0].code == code


@then("the changeset is empty")
def the_changeset_is_empty(context):
    assert context.world.plan.changes() == ()


@then('the diff adds the line "{line}" to "{path}"')
def the_diff_adds(context, line, path):
    diff = context.world.plan.diff()
    assert f"+++ b/{path}\n" in diff, diff
    assert f"\n+{line}\n" in diff, diff


@then("every actor's changeset has its own {changes:d} changes in order")
def every_changeset_has_its_own(context, changes):
    for world in context.world.rounds:
        started = [one.id for one in world.plan.changesets()]
        assert sorted(started) == sorted(world.outcomes), "a changeset is lost"
        for number, changeset_id in enumerate(world.outcomes):
            paths = [entry.path for entry in world.plan.changes(changeset_id)]
            assert paths == [f"{number}/{change}.txt" for change in range(changes)]


@then("all of them get the same one")
def all_of_them_get_the_same_one(context):
    for world in context.world.rounds:
        assert len({id(one) for one in world.outcomes}) == 1


@then("the command succeeds")
def the_command_succeeds(context):
    answer = context.world.tree.answer
    assert answer.returncode == 0, answer.stderr


@then("the command is refused with {code}, and somebody must choose")
def somebody_must_choose(context, code):
    answer = context.world.tree.answer
    assert (answer.returncode, answer.stdout) == (5, ""), answer
    assert f"error[{code}]" in answer.stderr, answer.stderr


@then("the command is refused with {code:w}")
def the_command_is_refused(context, code):
    answer = context.world.tree.answer
    assert answer.returncode == 1, answer
    assert f"error[{code}]" in answer.stderr, answer.stderr


@then("the user is warned with {code}")
def the_user_is_warned(context, code):
    answer = context.world.tree.answer
    assert f"warning[{code}]" in answer.stderr, answer.stderr
    assert answer.stdout, "what was asked for is answered too"


@then("no file of the user has changed")
def no_file_has_changed(context):
    tree = context.world.tree
    assert tree.files() == tree.before


@then('"{path}" has "{line}" in line {number:d}')
def has_in_line(context, path, line, number):
    assert context.world.tree.lines(path)[number - 1] == line


@then('the plan has "{line}" in line {number:d}')
def the_plan_has(context, line, number):
    assert plan_lines(context)[number - 1] == line


def plan_lines(context):
    changes = context.world.tree.workspace.changes
    head = changes.trees.tree_of(PLAN).head
    blob = changes.repository.files(head, ["app.txt"])["app.txt"]
    return b"".join(changes.repository.read([blob.oid])).decode().splitlines()


@then("the plan has changed nothing")
def the_plan_has_changed_nothing(context):
    assert context.world.tree.workspace.changes.difference(PLAN).records() == []


@then('what "{actor}" wrote is on record')
def is_on_record(context, actor):
    (changeset,) = context.world.tree.workspace.changes.changesets.of_plan(PLAN)
    assert (changeset.actor, [one.path for one in changeset.entries]) == (actor, ["app.txt"])
    assert changeset.finished


@then('the conflict tells line {number:d} of "{path}", "{one}" and "{other}"')
def the_conflict_tells(context, number, path, one, other):
    tree = context.world.tree
    (conflict,) = tree.records("changes", "conflicts")
    assert tree.answer.returncode == 5
    assert (conflict["path"], conflict["state"]) == (path, "open")
    for side, actor in (("ours", one), ("theirs", other)):
        told = conflict[side]
        assert (told["actor"], told["lines"]) == (actor, [[number, number]]), told


@then("all {count:d} files are there")
def all_files_are_there(context, count):
    assert len(list((context.world.tree.root / "made").iterdir())) == count


@then("the plan is on record as applied")
def the_plan_is_on_record(context):
    (plan,) = context.world.tree.records("changes", "show")
    assert plan["applied"].startswith("a-"), plan
