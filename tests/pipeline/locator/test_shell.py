from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.locator.launch import is_placeholder, normalise
from pipeline.locator.shell import parse_shell


def argvs(text):
    return [item.argv for item in parse_shell(text)]


def test_continuation_lines_prompts_comments_pipes_and_redirections():
    text = "# first\n$ python a.py --x 1 \\\n    --y 2 > log.txt 2>&1 | tee out &\n"
    (found,) = parse_shell(text)
    assert found.argv == ("python", "a.py", "--x", "1", "--y", "2")
    assert (found.line, found.comment) == (2, "first")


def test_loops_variables_defaults_and_arrays_are_filled_in():
    text = "data=(moons xor)\nlr=${LR:-0.1}\nfor d in ${data[@]}\ndo\n for s in $(seq 0 1); do\n python r.py --d $d --s $s --lr $lr\n done\ndone"
    assert argvs(text) == [
        ("python", "r.py", "--d", d, "--s", s, "--lr", "0.1") for d in ("moons", "xor") for s in ("0", "1")
    ]


def test_directory_and_environment_are_kept_apart_from_the_command():
    (found,) = parse_shell("export SEED=3\ncd sub && PYTHONPATH=. python x.py")
    assert found.directory == "sub"
    assert found.environment == (("PYTHONPATH", "."), ("SEED", "3"))
    assert found.argv == ("python", "x.py")


def test_unknown_values_stay_visible_but_forwarded_arguments_are_dropped():
    (found,) = parse_shell('python x.py --gpu $1 "$@"')
    assert found.argv == ("python", "x.py", "--gpu", "$1")
    assert found.unresolved == ("$1",)


def test_a_loop_without_end_gives_a_bounded_list():
    assert len(parse_shell("for i in {1..100000}; do python x.py $i; done")) <= 256


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_can_be_read(text):
    for item in parse_shell(text):
        normalise(item.argv)
        assert item.argv


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["for", "in", "do", "done", "x", ";", "\n", "&&", "|", "'", '"', "$(", ")", "\\", "{", "}"]),
        max_size=30,
    )
)
def test_broken_programs_can_be_read(parts):
    parse_shell(" ".join(parts))


def launch(*argv):
    found = normalise(argv)
    return found.argv if found else None


def test_launchers_are_replaced_by_what_they_are():
    assert launch("python3", "-u", "x.py", "--a") == ("python", "x.py", "--a")
    assert launch("nohup", "uv", "run", "python", "x.py") == ("python", "x.py")
    assert launch("srun", "--gres=gpu:1", "-n", "1", "python", "x.py") == ("python", "x.py")
    assert launch("torchrun", "--nproc_per_node=8", "t.py", "-b", "4") == (
        "python", "-m", "torch.distributed.run", "--nproc_per_node=8", "t.py", "-b", "4",
    )  # fmt: skip
    assert launch("accelerate", "launch", "t.py")[:3] == ("python", "-m", "accelerate.commands.launch")
    assert launch("python", "-m", "pkg.run", "a=1") == ("python", "-m", "pkg.run", "a=1")
    assert launch("./run.sh", "4") == ("bash", "./run.sh", "4")


def test_what_runs_no_script_is_no_launch():
    for argv in (("pip", "install", "x"), ("python", "-c", "1"), ("git", "clone", "u"), ("echo", "x.py"), ("python",)):
        assert launch(*argv) is None


def test_placeholders_are_told_from_values():
    assert all(map(is_placeholder, ["/path/to/data", "<model>", "$1", "{name}", "..."]))
    assert not any(map(is_placeholder, ["data/x.csv", "0.1", "meta-llama/Llama-2-7b-hf", "a=1"]))


def test_what_the_reader_puts_in_is_no_redirection_and_the_own_directory_is_none():
    (step,) = parse_shell("python run.py --out <your_output_dir> --config $(pwd)/c.yaml > log.txt")
    assert step.argv == ("python", "run.py", "--out", "<your_output_dir>", "--config", "c.yaml")
    assert normalise(("python", "-um", "pkg.train", "--lr", "1")).target == "pkg.train"
