from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.locator.documents import read_document

PAGE = """# Top

Intro.

## Run

Synthetic (no data needed):

```bash
cd sub
python a.py --skip-x
```

```python
python_is_not_a_command(1)
```

| what | command |
|---|---|
| Table 2 | `bash b.sh` |

Other
-----

    python c.py --k 3
"""


def test_sections_commands_and_places():
    sections = read_document("README.md", PAGE)
    assert [section.title for section in sections] == ["Top", "Top > Run", "Top > Other"]
    commands = {command.invocation.argv: command for section in sections for command in section.commands}
    assert set(commands) == {("python", "a.py", "--skip-x"), ("bash", "b.sh"), ("python", "c.py", "--k", "3")}
    first = commands[("python", "a.py", "--skip-x")]
    assert PAGE.splitlines()[first.line - 1] == "python a.py --skip-x"
    assert first.invocation.directory == "sub"
    assert "no data needed" in first.context
    assert PAGE.splitlines()[commands[("bash", "b.sh")].line - 1].startswith("| Table 2")


@settings(deadline=None)
@given(st.text(alphabet="#`~=-| \n\tabc.py$", max_size=300))
def test_any_page_can_be_read(text):
    for section in read_document("x.md", text):
        assert section.text.strip()


FOLDED = """# Results

<details>
<summary>Small <b>models</b> on digits</summary>

```bash
WIDTH=8
python train.py --width $WIDTH
```

</details>

Then `python evaluate.py`.
"""


def test_what_a_fold_sums_up_is_the_heading_of_its_commands_and_of_no_other():
    titles = {item.invocation.argv[1]: section.title for section in read_document("README.md", FOLDED)
              for item in section.commands}  # fmt: skip
    assert titles == {"train.py": "Results > Small models on digits", "evaluate.py": "Results"}


def test_a_row_of_a_table_stands_around_its_command():
    (run,) = [section for section in read_document("README.md", PAGE) if section.title == "Top > Run"]
    assert any("| Table 2 |" in item.context for item in run.commands)


def test_variables_of_one_block_are_there_in_the_next():
    page = "# X\n\n```\nFLAGS='--width 8 --deep'\n```\n\nThen:\n\n```\npython train.py $FLAGS\n```\n"
    (item,) = [command for section in read_document("README.md", page) for command in section.commands]
    assert item.invocation.argv == ("python", "train.py", "--width", "8", "--deep")
