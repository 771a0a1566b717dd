"""How the site is built: `sphinx-build -W -c docs . build/site`, from the root of a checkout."""

from __future__ import annotations

from typing import Any

import tecomp

project = "tecomp"
release = tecomp.__version__
root_doc = "docs/index"
include_patterns = ["docs/**", "tutorials/README.md", "tutorials/*.ipynb", "*.md"]
exclude_patterns = ["docs/conf.py"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = "tecomp"
nitpicky = False

# Notebooks are shown as they were run: `python tutorials/make_notebooks.py` runs them.
nb_execution_mode = "off"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Output of programs is shown as it is, and not every language of an example has colours.
suppress_warnings = ["misc.highlighting_failure"]

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "show-inheritance": False}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Source", "notes_style")]


def setup(app: Any) -> dict[str, bool]:
    """Nothing is kept between builds that two of them could not share."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
