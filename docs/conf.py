"""Sphinx: how the site is built from the sources that `python -m docs.site` writes."""

from typing import Any

import tiered
from docs.site.docstrings import as_rst

project = "tiered"
author = "the developers of tiered"
copyright = "the developers of tiered"
version = release = tiered.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns: list[str] = []
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # The tests execute the notebooks, which keep their outputs.

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
default_role = "code"
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # Attributes of several classes have one name.

html_theme = "furo"
html_title = f"tiered {version}"
# `docs.site` sets html_static_path.
html_css_files = ["diagram.css", "site.css"]
html_js_files = ["diagram.js", "site.js"]
html_copy_source = False
html_show_sphinx = False
html_permalinks_icon = "#"


def setup(app: Any) -> None:
    """Connect what reads the docstrings, before napoleon."""
    app.connect("autodoc-process-docstring", _read_docstring, priority=100)
    app.connect("autodoc-process-signature", _read_signature)


def _read_docstring(
    _app: Any, _kind: str, _name: str, _value: object, _options: Any, lines: list[str]
) -> None:
    lines[:] = as_rst(lines)


def _read_signature(
    _app: Any,
    _kind: str,
    _name: str,
    _value: object,
    _options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str, str | None] | None:
    """Return a signature that Sphinx can parse, so that it puts each parameter on a line."""
    return None if signature is None else (signature.replace("<factory>", "..."), returns)
