"""How the site is built: ``make docs`` runs Sphinx over this folder and writes ``build/site``."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_ext"), str(ROOT / "src")]

import reference  # noqa: E402

from partwise import __version__  # noqa: E402

reference.write(HERE / "reference")

project, author = "partwise", "the partwise developers"
project_copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "pages",
]

# --- Pages: the Markdown of this folder stays readable where no Sphinx is.

exclude_patterns = ["_ext", "_templates", "gallery/README.rst", "results"]
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_fence_as_directive = ["math"]  # what viewers of Markdown typeset, too
myst_heading_anchors = 4
suppress_warnings = [
    "config.cache",  # the order of examples is given by functions
]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(optional|array-like|callable|iterable|sequence|default.*)"),
    (r"py:.*", r"(np|numpy|scipy|sklearn|pandas|polars|pathlib|collections|typing|dataclasses|functools)\..*"),
]

# --- Reference

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
add_module_names = False
toc_object_entries_show_parents = "hide"

# The inventories of other projects are fetched where that is wanted; a build needs no network.
if os.environ.get("PARTWISE_DOCS_LINKS"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

# --- Formulas: MathJax lies in the site, one file that needs no fonts. It is not kept in the repository.

MATHJAX = ROOT / "build" / "mathjax" / "mathjax"


def bring_mathjax() -> None:
    """Copy MathJax from the package that ships it."""
    package = "sphinx-mathjax-offline"
    for file in metadata.files(package) or ():
        if file.name == "tex-svg.js":
            MATHJAX.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), MATHJAX / file.name)
            return
    raise RuntimeError(f"{package} has no tex-svg.js")


bring_mathjax()
mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"svg": {"fontCache": "local"}, "options": {"enableMenu": False}}
mathjax4_config = mathjax3_config

# --- Gallery

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(__init__|first_structure|segment_pictures|tag_sentences|torch_\w+|typed_example)\.py",
    "within_subsection_order": "pages.by_title",
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_",),
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 0,
    "write_computation_times": False,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("partwise",),
    "inspect_global_variables": False,
    "thumbnail_size": (400, 280),
    "line_numbers": False,
}

# --- The look

html_theme = "pydata_sphinx_theme"
html_title = "partwise"
html_static_path = ["_static", str(MATHJAX.parent)]
html_css_files = ["partwise.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_copy_source = False
html_theme_options = {
    "logo": {"text": "partwise", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 9,
    "show_prev_next": False,
    "navigation_with_keys": False,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "changes": [], "benchmarks": [], "reproduction": [], "start": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
