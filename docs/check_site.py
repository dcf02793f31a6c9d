"""The built site in headless Chromium: ``python docs/check_site.py build/site``.

Every page is opened as a file, without a network, at 390 pixels. What is reported: links that lead nowhere (anchors included),
pages that take more than two clicks from the first, errors of the console, formulas that were not set, pages that are wider
than the screen, words that are cut off at its edge, and a search that finds nothing.
"""

from __future__ import annotations

import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

PHONE = 390
#: the first words of what is cut off at the right edge without being scrolled into sight
CUT = """
const scrolls = new Map();
function inScroller(e) {
  if (e.tagName === "ARTICLE" || !e.parentElement) return false;
  if (!scrolls.has(e)) scrolls.set(e, /auto|scroll/.test(getComputedStyle(e).overflowX) || inScroller(e.parentElement));
  return scrolls.get(e);
}
const article = document.querySelector("article"), found = [];
if (!article) return found;  // the page of the search
const walk = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
for (let node = walk.nextNode(); node && found.length < 2; node = walk.nextNode()) {
  const parent = node.parentElement;
  if (!node.data.trim() || parent.closest("mjx-container, script, style, .headerlink") || inScroller(parent)) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  const box = range.getBoundingClientRect();
  if (box.width > 1 && box.height > 1 && box.right > innerWidth + 1) found.push(node.data.trim().slice(0, 40));
}
return found;
"""
#: what the search must find, and how many answers it shows within five seconds
SOUGHT = "SequenceLabeler"
ANSWERS = """
const [word, done] = arguments, begin = Date.now();
(function ask() {
  const n = [...document.querySelectorAll("#search-results li a")].filter(a => a.innerText.includes(word)).length;
  if (n || Date.now() - begin > 5000) done(n); else setTimeout(ask, 100);
})();
"""


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Called for each tag."""
        found = dict(attributes)
        if found.get("id"):
            self.anchors.add(str(found["id"]))
        link = found.get("href" if tag in ("a", "link") else "src")
        if link and tag in ("a", "img", "script", "link"):
            self.links.append(link)


def read(site: Path) -> dict[Path, Page]:
    """All pages."""
    return {
        path.resolve(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }


def check_links(pages: dict[Path, Page], site: Path) -> list[str]:
    """Dead links, and pages that are too far from the first one."""
    wrong: list[str] = []
    to: dict[Path, set[Path]] = {path: set() for path in pages}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                wrong.append(f"{path.relative_to(site)}: {link} leads nowhere")
            elif target in pages:
                to[path].add(target)
                if parts.fragment and unquote(parts.fragment) not in pages[target].anchors:
                    wrong.append(f"{path.relative_to(site)}: there is no {link}")
    near, reached = {site / "index.html"}, {site / "index.html"}
    for _ in range(2):
        near = set().union(*(to.get(path, set()) for path in near))
        reached |= near
    special = {"genindex.html", "search.html", "py-modindex.html"}
    wrong += [
        f"{path.relative_to(site)} is more than two clicks away"
        for path in pages
        if path not in reached and path.name not in special
    ]
    return wrong


def look(pages: dict[Path, Page], site: Path) -> list[str]:
    """What a browser says."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--allow-file-access-from-files",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    wrong = []
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": PHONE, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        )
        for path in pages:
            name = str(path.relative_to(site))
            driver.get(path.as_uri())
            driver.execute_async_script(
                "const done = arguments[0]; const m = window.MathJax;"
                "if (m && m.startup && m.startup.promise) m.startup.promise.then(() => done()); else setTimeout(done, 30);"
            )
            wide = driver.execute_script("return document.documentElement.scrollWidth")
            if wide > PHONE + 1:
                wrong.append(f"{name}: {wide} pixels wide on a screen of {PHONE}")
            for words in driver.execute_script(CUT):
                wrong.append(f"{name}: {words!r} goes beyond the right edge, and nothing scrolls there")
            plain = driver.execute_script(
                "return [...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container')).length"
            )
            if plain:
                wrong.append(f"{name}: {plain} formulas are not set")
            wrong += [
                f"{name}: {entry['message']}" for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "ERROR")
            ]
        driver.get(f"{(site / 'search.html').as_uri()}?q={SOUGHT}")
        found = driver.execute_async_script(ANSWERS, SOUGHT)
        if not found:
            wrong.append(f"search.html: {SOUGHT!r} is not found")
    finally:
        driver.quit()
    return wrong


def main(folder: str) -> None:
    """Look, and tell."""
    site = Path(folder).resolve()
    pages = read(site)
    wrong = [*check_links(pages, site), *look(pages, site)]
    print("\n".join(wrong))
    print(f"{len(pages)} pages, {len(wrong)} complaints")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build/site")
