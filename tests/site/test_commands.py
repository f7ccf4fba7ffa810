"""The site shows commands as they are typed, without what runs them in the tests."""

import re
import shlex
from pathlib import Path

import pytest

from docs.site.commands import as_typed
from docs.site.sources import placed_documents

DOCS = Path(__file__).resolve().parents[2] / "docs"

PAGE = """# Page

One.

The page runs as a test. `run` takes a command as it
is typed.

```python
def run(command: str) -> int:
    return 0
```

## Task

```python
Path("a").write_text("b")
command = "tiered optimize a b"
print(run(f"{command} -O3", "nodes"))
print(run("tiered check b"))
```

```text
0
```

```python
print(1)
```
"""


def test_calls_become_commands_and_python_stays() -> None:
    shown = as_typed(PAGE)
    assert "run" not in shown.replace("$ is", "")
    assert '```python\nPath("a").write_text("b")\n```\n' in shown
    assert "```console\n$ tiered optimize a b -O3\n$ tiered check b\n```\n" in shown
    assert "```python\nprint(1)\n```\n" in shown
    assert "```text\n0\n```" in shown


def test_a_page_without_such_calls_stays() -> None:
    text = "```python\nprint(run(1))\n```\n"
    assert as_typed(text) == text


@pytest.mark.parametrize("name", ["guides.md", "ten_tasks.md"])
def test_the_pages_of_tasks_can_be_copied(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    shown = as_typed(page)
    typed = re.findall(r"^\$ (.*)$", shown, re.MULTILINE)
    assert len(typed) == page.count("print(run(")
    assert all(shlex.split(command)[0] == "tiered" for command in typed)
    assert "run(" not in shown
    assert "redirect_stdout(said)" not in shown


def test_the_site_has_them_so() -> None:
    assert "$ tiered" in dict(placed_documents())["guides.md"]


def test_links_have_the_titles_of_pages() -> None:
    pages = dict(placed_documents())
    assert "[opsets.md]" not in pages["guides.md"]
    title = (DOCS / "opsets.md").read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    assert f"[{title}](opsets.md)" in pages["guides.md"]
