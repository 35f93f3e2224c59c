from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.integrity.shell import read_commands


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("git log --oneline | head && git show HEAD~1:run.py > x.py", ["git log --oneline", "head", "git show HEAD~1:run.py"]),
        ("bash -lc 'cd /work; git checkout abc1234'", ["cd /work", "git checkout abc1234"]),
        ('python -c "import subprocess; subprocess.run([\'git\', \'log\', \'-p\'])"', ["git log -p"]),
        ("python - <<'EOF'\nimport os\nos.system('git stash pop')\nEOF\necho hi", ["git stash pop", "echo hi"]),
        ("timeout 60 git fetch origin", ["git fetch origin"]),
        ("sudo -u x env A=1 git -C /r reflog", ["git -C /r reflog"]),
        ("ls *.py | xargs -n1 git log --", ["git log --"]),
        ("(cd a; git branch -a)", ["git branch -a"]),
        ("git log\ngit status", ["git log", "git status"]),
        ("cat <<EOF | bash\ngit log -p\nEOF", ["git log -p"]),
        ("R=HEAD~1; git show $R:x", ["git show HEAD~1:x"]),
        ("git show $(git rev-parse HEAD~1):x", ["git rev-parse HEAD~1", "git show HEAD~1:x"]),
        ("find . -name x -exec git blame {} \\;", ["git blame"]),
        ("echo \"two\nlines\"\ngit log -p", ["git log -p"]),
        ("eval 'git show HEAD^'", ["git show HEAD^"]),
        ("git log # git fetch", ["git log"]),
    ],
)  # fmt: skip
def test_commands_are_found(text: str, wanted: list[str]) -> None:
    found = [" ".join(command.argv) for command in read_commands(text)]
    assert [item for item in wanted if item not in found] == []


@pytest.mark.parametrize(
    "text",
    [
        "echo 'git log -p'",
        "cat > f.sh <<EOF\ngit log -p\nEOF",
        "# git log -p",
        "echo hi # git log -p",
        "grep 'git show' notes.md",
    ],
)
def test_words_that_are_not_run_are_no_commands(text: str) -> None:
    assert not any(command.name == "git" for command in read_commands(text))


def test_write_targets() -> None:
    (command,) = read_commands("echo 0.93 > results.txt")
    assert command.writes == ("results.txt",)


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert all(command.argv for command in read_commands(text))
