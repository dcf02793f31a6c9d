"""The page of suspects: one file that a browser opens from disk, without a server and without the network."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from typing import Any

from partwise.files.text_edits import EditableText
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.review import MOST_TEXT_BYTES

SCRIPTS = ("state", "view", "heads", "brackets", "text", "actions")  #: in this order, they are one script


def made_page(data: dict[str, Any], source: EditableText) -> bytes:
    """The page of a `Review`, packed, and of the text that it is about.

    Data are JSON in blocks that no browser runs, with ``<``, ``>`` and ``&`` written as escapes; the page puts them in place as
    text only. The style and the script are named by their digests, and nothing else may be loaded or run.
    """
    require_jinja()
    import jinja2
    from markupsafe import Markup

    from partwise.cli.common import finite

    style, script = part("review.css"), "\n".join(part(f"review_{name}.js") for name in SCRIPTS)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    text = source.text.decode() if len(source.text) <= MOST_TEXT_BYTES else None
    policy = f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; base-uri 'none'; form-action 'none'"
    page = environment.from_string(part("review.html")).render(
        style=Markup(style),
        script=Markup(script),
        policy=policy,
        name=source.name,
        data=finite(data),
        text=text,
    )
    return page.encode("utf-8", "surrogatepass")


def require_jinja() -> None:
    """Say what is missing before any work is done."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise Refusal("--html needs jinja2: pip install 'partwise[html]'.") from None


def part(name: str) -> str:
    """A file of the page, as it is in the package."""
    return (importlib.resources.files("partwise.cli") / "pages" / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """What a content security policy calls a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
