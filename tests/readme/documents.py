"""Parses the documents: code blocks, tables, headings and links."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_FENCED = re.compile(r"^```(\w*)(?: [^\n]*)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PICTURE = re.compile(r'<img src="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Document:
    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text()

    def code(self, language: str) -> list[str]:
        return [block for name, block in self.blocks() if name == language]

    def blocks(self) -> list[tuple[str, str]]:
        """Return the language and the contents of each fenced block."""
        return _FENCED.findall(self.text)

    def rows(self, section: str | None = None) -> list[list[str]]:
        """Return the cells of all table rows, or of those below the heading `section`, without headings of columns."""
        text = self.text if section is None else self._section(section)
        lines = [line for line in text.splitlines() if line.startswith("|")]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        rules = {index for index, row in enumerate(rows) if set("".join(row)) <= {"-", ":"}}
        return [row for index, row in enumerate(rows) if index not in rules and index + 1 not in rules]

    def _section(self, heading: str) -> str:
        """Return what stands between a heading and the next one. Raises KeyError if there is no such heading."""
        parts = _HEADING.split(_FENCED.sub("", self.text))
        return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]

    def links(self) -> list[str]:
        prose = _FENCED.sub("", self.text)
        return [*_LINK.findall(prose), *_PICTURE.findall(prose)]

    def anchors(self) -> set[str]:
        """Return the anchors of the headings, as GitHub creates them."""
        names = (_LINK.sub("]", heading).lower() for heading in _HEADING.findall(_FENCED.sub("", self.text)))
        return {re.sub(r"[^\w\- ]", "", name).replace(" ", "-") for name in names}


README = Document(ROOT / "README.md")


def all_documents() -> list[Document]:
    patterns = ("*.md", "docs/**/*.md", "clients/*/README.md")
    return [Document(path) for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def commands(block: str) -> list[str]:
    """Return the commands of a block. A backslash joins lines."""
    joined = block.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
