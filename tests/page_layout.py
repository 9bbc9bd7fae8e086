"""Measures how a page is laid out: money, the rows of tables, and the icons of notices."""

from typing import Any

from playwright.sync_api import Page, ViewportSize

PHONE = ViewportSize(width=360, height=740)
"""The width of most phones in use."""

# Money is found by its text, so that an amount that was forgotten in a template is measured too.
# A range of text in right-to-left order may have several rectangles on one line.
_FIND_MONEY = r"""() => {
  const amount = /(?:LYD[ \u00a0])?\d[\d,]*\.\d{3}(?!\d)(?:[ \u00a0](?:LYD|د\.ل\.?\u200f?))?/g;
  const found = { seen: [], problems: [] };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    if (!parent.checkVisibility({ visibilityProperty: true })) continue;
    if (parent.closest(".unseen, code, svg, template, noscript")) continue;
    for (const match of node.data.matchAll(amount)) {
      const text = match[0];
      found.seen.push(text);
      const say = (problem) => found.problems.push(`“${text}” ${problem}`);
      if (!/LYD|د\.ل/.test(text)) say("has no currency");
      const range = document.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + text.length);
      const rectangles = [...range.getClientRects()].filter(({ width }) => width > 0);
      const tops = rectangles.map(({ top }) => top);
      const box = range.getBoundingClientRect();
      if (Math.max(...tops) - Math.min(...tops) > rectangles[0].height / 2) say("wraps");
      if (box.left < 0 || box.right > document.documentElement.clientWidth) say("is outside of the screen");
      for (let around = node.parentElement, block = null; around !== document.body; around = around.parentElement) {
        const { left, right } = around.getBoundingClientRect();
        const name = `${around.localName}.${around.className}`;
        if (box.left < left - 1 || box.right > right + 1) say(`is wider than ${name}`);
        if (block || getComputedStyle(around).display === "inline") continue;
        block = around;
        if (block.scrollWidth > block.clientWidth) say(`overflows ${name}`);
      }
    }
  }
  return found;
}"""
_FIND_TABLE_PROBLEMS = """() => {
  const wide = document.documentElement.clientWidth;
  const problems = [];
  if (document.documentElement.scrollWidth > wide) problems.push("the page scrolls sideways");
  for (const box of document.querySelectorAll(".table")) {
    if (!box.checkVisibility()) continue;
    const heads = [...box.querySelectorAll("thead th")];
    const name = heads.map((head) => head.textContent.trim()).join(", ");
    const say = (problem) => problems.push(`table of ${name}: ${problem}`);
    if (box.scrollWidth > box.clientWidth) say(`scrolls sideways: ${box.scrollWidth} in ${box.clientWidth} px`);
    for (const row of box.querySelectorAll("tbody tr")) {
      const cells = [...row.children];
      const spans = cells.reduce((sum, cell) => sum + cell.colSpan, 0);
      if (spans !== heads.length) say(`a row has ${spans} cells for ${heads.length} columns`);
      for (const [index, cell] of cells.entries()) {
        const isHidden = heads[index].querySelector(".unseen") !== null;
        const label = isHidden || cell.colSpan > 1 ? null : heads[index].textContent.trim();
        if (cell.getAttribute("data-label") !== label) say(`${label} is labelled ${cell.getAttribute("data-label")}`);
        const before = getComputedStyle(cell, "::before");
        const room = parseFloat(getComputedStyle(cell).paddingInlineStart);
        const isTooNarrow = before.float !== "none" && room < parseFloat(before.width);
        if (label && isTooNarrow) say(`the label ${label} has ${room} px`);
        if (cell.getAttribute("role") !== (index ? "cell" : "rowheader")) say(`${label} has the wrong role`);
      }
    }
    for (const control of box.querySelectorAll("tbody :is(a, button, select, input:not([type=hidden]), .badge)")) {
      const { left, right } = control.getBoundingClientRect();
      if (left < 0 || right > wide) say(`off the screen: ${control.textContent.trim()}`);
    }
  }
  return problems;
}"""
_FIND_NOTICE_PROBLEMS = """() => [...document.querySelectorAll(".notice")].flatMap((notice) => {
  const icon = notice.querySelector(":scope > .icon")?.getBoundingClientRect();
  const text = notice.querySelector(":scope > div");
  const range = document.createRange();
  range.selectNodeContents(text);
  const line = [...range.getClientRects()].find(({ width, height }) => width > 0 && height > 0);
  const name = `notice “${text.textContent.trim().slice(0, 40)}”`;
  if (!icon) return [`${name} has no icon`];
  const isRtl = document.documentElement.dir === "rtl";
  const gap = isRtl ? icon.left - text.getBoundingClientRect().right : text.getBoundingClientRect().left - icon.right;
  const middle = (icon.top + icon.bottom) / 2;
  return [
    ...(gap < 0 || gap > 24 ? [`${name}: the icon is ${gap} px before the text`] : []),
    ...(middle < line.top || middle > line.bottom ? [`${name}: the icon is not beside the first line`] : []),
  ];
})"""


def money_problems(page: Page) -> list[str]:
    """Return where an amount wraps, is cut, or has no currency. Fails if the page shows none."""
    found = _measure(page, _FIND_MONEY)
    assert found["seen"], f"{page.url} shows no money"
    problems: list[str] = found["problems"]
    return problems


def table_problems(page: Page) -> list[str]:
    """Return what of a table is off the screen, and cells whose label or role does not belong to their column."""
    problems: list[str] = _measure(page, _FIND_TABLE_PROBLEMS)
    return problems


def notice_problems(page: Page) -> list[str]:
    """Return the notices whose icon is not beside their first line, at its start."""
    problems: list[str] = _measure(page, _FIND_NOTICE_PROBLEMS)
    return problems


def _measure(page: Page, script: str) -> Any:
    page.wait_for_load_state()  # after a form, the text is there before the style
    return page.evaluate(script)
