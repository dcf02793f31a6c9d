"""What the site adds to the Markdown of the docs: pages of the root, and links that leave the docs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kernel_words

DOCS = Path(__file__).parent.parent
ROOT = DOCS.parent

#: pages of the site whose text is a file of the root
FROM_THE_ROOT = {
    "contributing": "CONTRIBUTING.md",
    "changes": "CHANGELOG.md",
    "conduct": "CODE_OF_CONDUCT.md",
    "security": "SECURITY.md",
}
PAGE_OF = {file: page for page, file in FROM_THE_ROOT.items()}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE = re.compile(r"^(```|~~~)[^\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)
BLANK = "The page of the site is made from that file."
#: what estimators have for commands and reports, not for users
FOR_COMMANDS = {
    "check_parameters", "checkpoint_seconds", "cost", "defaults", "evaluate", "given_scheme_", "judge", "judged_by_sums",
    "keep_held_out", "label_column_", "listed_from", "packer", "parameter_names", "parameters", "sklearn_mixins", "training_",
}  # fmt: skip


def moved(text: str, own: str) -> str:
    """Links that lead out of the docs, to where the site has what they mean; those to sources become plain words.

    `own` is the folder of the file relative to the docs: ``"../"`` for files of the root, nothing for those of the docs.
    """

    def replace(found: re.Match[str]) -> str:
        words, target = found.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return found[0]
        path, _, anchor = target.partition("#")
        inside = (DOCS / own / path).resolve()
        anchor = f"#{anchor}" if anchor else ""
        if inside.is_relative_to(DOCS):
            return f"[{words}]({inside.relative_to(DOCS).as_posix()}{anchor})"
        name = inside.relative_to(ROOT).as_posix()
        if name in PAGE_OF:
            return f"[{words}]({PAGE_OF[name]}.md{anchor})"
        if name == "README.md":
            return f"[{words}](index.md)"
        example = DOCS / "gallery" / Path(name).name
        if name.startswith("examples/plot_") and example.exists():
            return f"[{words}](gallery/{example.stem}.rst)"
        return words if words.startswith("`") else f"{words} (`{name}`)" if words != name else f"`{name}`"

    def outside_code(piece: str) -> str:
        return LINK.sub(replace, piece)

    pieces, last = [], 0
    for code in CODE.finditer(text):
        pieces += [outside_code(text[last : code.start()]), code[0]]
        last = code.end()
    return "".join([*pieces, outside_code(text[last:])])


def read(app: Any, page: str, source: list[str]) -> None:
    """Replace the text of a page before Sphinx sees it."""
    if page in FROM_THE_ROOT:
        file = ROOT / FROM_THE_ROOT[page]
        text = moved(file.read_text(encoding="utf-8"), "../")
        source[0] = re.sub(r"!\[([^\]]*)\]\(docs/", r"![\1](", text)
        app.env.note_dependency(str(file))
    elif not page.startswith(("gallery/", "reference/")):
        source[0] = moved(source[0], str(Path(page).parent))


def skip(app: Any, kind: str, name: str, member: Any, skipped: bool, options: Any) -> bool | None:
    """Members that scikit-learn gives to every estimator are documented there; what commands use is not for users."""
    if kind == "class" and name in FOR_COMMANDS:
        return True
    home = getattr(member, "__module__", "") or ""
    if home.startswith("sklearn") or type(member).__module__.startswith("sklearn"):
        return True
    return None


def by_title(name: str) -> str:
    """Examples come in the order of their numbers, which their names do not show: see ``examples/order.txt``."""
    order = (ROOT / "examples" / "order.txt").read_text().split()
    stem = Path(name).name
    return f"{order.index(stem):03d}" if stem in order else f"999{stem}"


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", read)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", kernel_words.add, priority=100)  # before numpydoc
    return {"parallel_read_safe": True}
