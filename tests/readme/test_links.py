"""Links in the documents point to files and headings that exist."""

import re

from tests.readme.documents import ROOT, Document, all_documents


def test_every_link_between_documents_works() -> None:
    broken = [
        f"{document.path.relative_to(ROOT)}: {link}"
        for document in all_documents()
        for link in document.links()
        if not re.match(r"[a-z]+:|/docs(\?|$)", link) and not _works(document, link)
    ]
    assert broken == []


def test_pictures_are_small_and_all_used() -> None:
    pictures = list((ROOT / "docs" / "images").iterdir())
    shown = {link.rpartition("/")[2] for document in all_documents() for link in document.links()}
    assert {picture.name for picture in pictures} <= shown
    assert sum(picture.stat().st_size for picture in pictures) < 1_500_000


def _works(document: Document, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (document.path.parent / path).resolve() if path else document.path
    return target.exists() and (not anchor or anchor in Document(target).anchors())
