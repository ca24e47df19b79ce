"""Trees, what actors make of them without seeing each other, and how git merges that."""

from __future__ import annotations

from hypothesis import strategies as st

from unit.infrastructure.git.user_trees import contents, git, put

NAMES = ["a", "b", "d/a", "d/b", "e/f/g"]


def edited(draw, data):
    lines = data.decode().splitlines()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines)))
        new = f"new {draw(st.integers(0, 3))}"
        match draw(st.sampled_from(["insert", "replace", "delete"])):
            case "insert":
                lines.insert(at, new)
            case "replace":
                lines[at : at + 1] = [new]
            case _:
                del lines[at : at + draw(st.integers(1, 3))]
    return "".join(f"{line}\n" for line in lines).encode()


@st.composite
def worlds(draw):
    """A tree, and what 2 to 4 actors make of it without seeing each other."""
    names = draw(st.sets(st.sampled_from(NAMES), min_size=1))
    tree = {
        name: "".join(f"{name} {n}\n" for n in range(draw(st.integers(1, 14)))).encode()
        for name in sorted(names)
    }
    sides = []
    for _ in range(draw(st.integers(2, 4))):
        mine = dict(tree)
        for name in draw(st.lists(st.sampled_from([*NAMES, "new", "d"]), min_size=1, max_size=3)):
            deed = draw(st.sampled_from(["edit", "edit", "edit", "remove", "rename", "write"]))
            blocked = any(one.startswith(f"{name}/") or name.startswith(f"{one}/") for one in mine)
            if deed == "edit" and name in mine:
                mine[name] = edited(draw, mine[name])
            elif deed == "remove":
                mine.pop(name, None)
            elif deed == "rename" and name in mine:
                mine[f"moved-{draw(st.integers(0, 2))}"] = mine.pop(name)
            elif deed == "write" and not blocked:
                mine[name] = f"written {draw(st.integers(0, 2))}\n".encode()
        sides.append(mine)
    return tree, sides


def by_git(folder, tree, sides):
    """Merge branches one after the other as people do; a branch in conflict is left out."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    save(folder, tree)
    for n, side in enumerate(sides):
        git(folder, "checkout", "--quiet", "-b", f"b{n}", "main~0")
        save(folder, side)
        git(folder, "checkout", "--quiet", "main")
    outcome = []
    for n in range(len(sides)):
        git(folder, "merge", "--quiet", "--no-edit", "--no-stat", f"b{n}", fine=(0, 1))
        conflicted = bool(git(folder, "ls-files", "--unmerged"))
        outcome.append("conflicted" if conflicted else "merged")
        if conflicted:
            git(folder, "merge", "--abort")
        else:
            # In doubt about folders git stops without a conflict.
            git(folder, "commit", "--quiet", "--allow-empty", "--no-edit", "-m", "x")
    return outcome, contents(folder)


def save(folder, tree):
    git(folder, "rm", "-rq", "--ignore-unmatch", ".")
    for path, data in tree.items():
        put(folder, path, data)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "x")
