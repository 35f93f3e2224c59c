from hypothesis import given
from hypothesis import strategies as st

from flows.locate_commands import command_groups
from pipeline.task import Usage


def use(*argv, directory="."):
    return Usage(argv=argv, directory=directory, reason="run.sh:3")


def test_commands_of_a_loop_are_one_and_what_varies():
    usage = [
        use("python", "run.py", "--len", str(length), "--seed", str(seed)) for seed in (1, 2) for length in (192, 96)
    ]
    (group,) = command_groups(usage)
    assert group.line == "python run.py --len 192 --seed 1"
    assert group.others == "and 3 more, over --len 96, 192; --seed 1, 2"


def test_other_scripts_options_and_directories_stay_apart():
    usage = [
        use("python", "a.py"),
        use("python", "b.py"),
        use("python", "a.py", "--x"),
        use("python", "a.py", directory="d"),
    ]
    assert [group.line for group in command_groups(usage)] == [
        "python a.py",
        "python b.py",
        "python a.py --x",
        "cd d && python a.py",
    ]
    assert all(group.others == "" for group in command_groups(usage))


def test_values_joined_to_their_option_and_words_without_one_are_told_apart():
    assert (
        command_groups([use("python", "a.py", "x"), use("python", "a.py", "y")])[0].others
        == "and 1 more, over word 3 x, y"
    )
    joined = command_groups([use("python", "a.py", "--n=1"), use("python", "a.py", "--n=2")])
    assert joined[0].others == "and 1 more, over word 3 --n=1, --n=2"


def test_a_command_can_be_pasted_into_a_shell():
    (group,) = command_groups([use("python", "my run.py", "--name", "it's", directory="a b")])
    assert group.line == """cd 'a b' && python 'my run.py' --name 'it'"'"'s'"""


WORDS = st.lists(st.sampled_from(["python", "a.py", "--x", "1", "10", "2"]), min_size=1, max_size=5)


@given(st.lists(WORDS, max_size=8))
def test_no_command_is_lost(rows):
    groups = command_groups([use(*row) for row in rows])
    assert sum(group.count for group in groups) == len(rows)
