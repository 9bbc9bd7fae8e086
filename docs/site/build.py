"""Builds the documentation site: `python docs/site/build.py DIRECTORY` writes `en/` and `ar/` into it.

The pages are the Markdown files of docs/, with some files from the root of the project and the READMEs of the clients.
Links between them are rewritten to where the pages stand in the site; links to other files of the project become text.
"""

import argparse
import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath
from posixpath import relpath

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "docs" / "site"
_LINK = re.compile(r"(!?\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\])\(([^)\s]+)\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_FROM_ELSEWHERE = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "clients/node/README.md": "clients/node.md",
    "clients/php/README.md": "clients/php.md",
    "clients/python/README.md": "clients/python.md",
}
"""Pages of the English site that are not in docs/."""


def english_pages() -> dict[str, str]:
    """Return the place of each page in the English site, by its path in the project."""
    own = _pages_of("docs/")
    return {path: page for path, page in own.items() if not page.startswith("ar/")} | _FROM_ELSEWHERE


def arabic_pages() -> dict[str, str]:
    return _pages_of("docs/ar/")


def _pages_of(directory: str) -> dict[str, str]:
    paths = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / directory).rglob("*.md"))]
    return {path: path.removeprefix(directory) for path in paths}


def build(target: Path, *, is_strict: bool) -> None:
    """Build both languages, and replace the site when both are complete. Raises SystemExit if the generator fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    work = target.with_name(f"{target.name}-work")
    with target.with_name(f"{target.name}-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another build may be running
        shutil.rmtree(work, ignore_errors=True)
        try:
            _build_languages(work, is_strict=is_strict)
            if target.exists():
                target.rename(work / "previous")
            (work / "built").rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _build_languages(work: Path, *, is_strict: bool) -> None:
    english, arabic = english_pages(), arabic_pages()
    (work / "built").mkdir(parents=True)
    for lang, pages, other in (("en", english, arabic), ("ar", arabic, english)):
        site = work / lang / "site"
        _stage(work / lang, lang, pages, other)
        _generate(work / lang, is_strict=is_strict)
        _move_scripts_to_files(site)
        _place_error_page(site / "404.html", f"/docs/{lang}/")
        site.rename(work / "built" / lang)


def _stage(directory: Path, lang: str, pages: dict[str, str], other: dict[str, str]) -> None:
    for source, page in pages.items():
        file = directory / "docs" / page
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_with_site_links(source, pages, other), "utf-8")
    shutil.copytree(ROOT / "docs" / "images", directory / "docs" / "images")
    shutil.copy(ROOT / "services" / "api" / "static" / "mark.svg", directory / "docs" / "images")
    shutil.copytree(ROOT / "docs" / "examples", directory / "examples")
    shutil.copy(SITE / "site.css", directory / "docs")
    shutil.copy(SITE / "common.yml", directory)
    shutil.copy(SITE / f"{lang}.yml", directory / "mkdocs.yml")


def _with_site_links(source: str, pages: dict[str, str], other: dict[str, str]) -> str:
    """Return the text of a page, with its links as they are in the site."""

    def rewrite(link: re.Match[str]) -> str:
        text, address = link.groups()
        path, _, anchor = address.partition("#")
        if not path or path.startswith("/") or re.match(r"[a-z]+:", path):
            return link[0]
        linked = _normalise(PurePosixPath(source).parent / path)
        here = PurePosixPath(pages[source]).parent
        if linked in pages:
            address = relpath(pages[linked], here)
        elif linked.startswith("docs/images/"):
            address = relpath(linked.removeprefix("docs/"), here)
        elif linked in other:
            lang = "ar" if linked.startswith("docs/ar/") else "en"
            address = f"/docs/{lang}/{_url_path(other[linked])}"
        else:
            return text.strip("![]")
        return f"{text}({address}{'#' if anchor else ''}{anchor})"

    parts = _FENCED.split((ROOT / source).read_text("utf-8"))
    return "".join(part if part.startswith("```") else _LINK.sub(rewrite, part) for part in parts)


def _normalise(path: PurePosixPath) -> str:
    return relpath((ROOT / path).resolve(), ROOT)


def _url_path(page: str) -> str:
    """Return the address of a page below that of its language."""
    name = page.removesuffix(".md")
    return "" if name == "index" else re.sub(r"/(index|README)$", "", name) + "/"


def _generate(directory: Path, *, is_strict: bool) -> None:
    generator = Path(sys.executable).parent / "zensical"
    command = [str(generator), "build", *(["--strict"] if is_strict else [])]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"The documentation could not be built.\n{done.stdout}{done.stderr}")


def _move_scripts_to_files(site: Path) -> None:
    """Replace the scripts inside of pages by files: our content policy allows no others."""
    for page in site.rglob("*.html"):

        def move(script: re.Match[str], depth: str = relpath(site, page.parent)) -> str:
            code = script[1].encode()
            name = f"assets/javascripts/{hashlib.sha256(code).hexdigest()[:12]}.js"
            (site / name).write_bytes(code)
            return f'<script src="{depth}/{name}"></script>'

        page.write_text(_INLINE_SCRIPT.sub(move, page.read_text("utf-8")), "utf-8")


def _place_error_page(page: Path, address: str) -> None:
    """Let the links of the page for unknown addresses begin with the address of the site."""
    html = re.sub(r'((?:href|src)=")(?:/(?!docs[/?"])|\./)', rf"\1{address}", page.read_text("utf-8"))
    html = re.sub(r'("base":|"search":)"/', rf'\1"{address}', html)
    page.write_text(html, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--strict", action="store_true", help="fail for a link that leads nowhere")
    options = parser.parse_args()
    build(options.directory.resolve(), is_strict=options.strict)


if __name__ == "__main__":
    main()
