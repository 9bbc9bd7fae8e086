"""Checks that an Arabic page has no untranslated text."""

import re

from playwright.sync_api import Page

_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_EXPLAINED = re.compile(r"\([A-Za-z -]+\)")
"""A term that developers know, after the Arabic for it."""
_GIVEN = re.compile(r"\b[A-Z0-9]{10}\b|\S+@\S+|\b(pk|at)_\w+|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""References, addresses, credentials, ids."""
_NAMES_OF_THINGS = {
    "API",
    "CSV",
    "Chrome",
    "DNS",
    "HMAC-SHA256",
    "HTTP",
    "IP",
    "Linux",
    "Python",
    "TLS",
    "UUID",
    "https",
    "whsec_",
}
_ALLOWED_IN_ARABIC = {"English", "payment_intent", "succeeded", "xx"} | _NAMES_OF_THINGS
# Ids, addresses and texts of people are in elements of their own.
_OUR_OWN_TEXT = """() => {
  const body = document.body.cloneNode(true);
  for (const other of body.querySelectorAll("bdi, code, pre, [dir=ltr], template, script")) other.remove();
  const named = [...body.querySelectorAll("[aria-label], [title], [placeholder], [data-confirm], [data-busy]")]
    .flatMap(({ attributes }) => [...attributes])
    .filter(({ name }) => ["aria-label", "title", "placeholder", "data-busy"].includes(name))
    .map(({ value }) => value);
  return [document.title, body.textContent, ...named].join(" ");
}"""


def english_left_in_arabic(page: Page) -> set[str]:
    text = _GIVEN.sub("", _EXPLAINED.sub("", page.evaluate(_OUR_OWN_TEXT)))
    return set(_LATIN.findall(text)) - _ALLOWED_IN_ARABIC
