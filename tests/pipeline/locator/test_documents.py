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


def test_table_rows_are_units_of_their_own():
    (run,) = [section for section in read_document("README.md", PAGE) if section.title == "Top > Run"]
    assert "| Table 2 | `bash b.sh` |" in run.units


@settings(deadline=None)
@given(st.text(alphabet="#`~=-| \n\tabc.py$", max_size=300))
def test_any_page_can_be_read(text):
    for section in read_document("x.md", text):
        assert section.text.strip()
