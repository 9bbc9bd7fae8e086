// Polls the server and updates [data-live] while the page is visible.

const part = document.querySelector("[data-live]");
const toggle = document.querySelector("[data-live-toggle]");
const status = document.querySelector("[data-live-status]");

if (part && toggle && status) {
  const every = 1000 * Number(part.dataset.liveEvery ?? 3);
  const longest = 60_000;
  let pause = every;
  let timer = 0;
  let known = null;
  let isOn = true;

  const schedule = () => {
    clearTimeout(timer);
    if (isOn && document.visibilityState === "visible") timer = setTimeout(poll, pause);
  };

  const stop = (text) => {
    isOn = false;
    toggle.setAttribute("aria-pressed", "false");
    toggle.hidden = true;
    status.textContent = text;
  };

  async function poll() {
    clearTimeout(timer);
    try {
      const response = await fetch(location.href, {
        headers: { "X-Part": part.dataset.live },
        redirect: "manual",
        cache: "no-store",
      });
      if (response.type === "opaqueredirect" || response.status === 401) return stop(status.dataset.ended);
      if (!response.ok) throw new Error(String(response.status));
      show(await response.text());
      pause = every;
      status.textContent = "";
    } catch {
      pause = Math.min(2 * pause, longest);
      status.textContent = status.dataset.away;
    }
    schedule();
  }

  function show(html) {
    if (!isOn || html === known) return;
    const isFirst = known === null;
    known = html;
    const made = document.createElement("div");
    made.innerHTML = html;
    if (isFirst && made.textContent.trim() === part.textContent.trim()) return;
    if (isInUse()) {
      known = null; // shown at the next poll
      return;
    }
    if (made.querySelector("[data-final]")) return location.reload();
    swap(made);
  }

  // Whether text in it is selected, perhaps to be copied.
  function isInUse() {
    const selection = getSelection();
    return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  }

  function swap(made) {
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    for (const details of part.querySelectorAll("details[id]")) {
      const same = made.querySelector(`#${details.id}`);
      if (same) same.open = details.open;
    }
    const scrolled = [...part.querySelectorAll(".table, pre")].map((box) => [box.scrollLeft, box.scrollTop]);
    part.replaceChildren(...made.childNodes);
    for (const [index, box] of part.querySelectorAll(".table, pre").entries()) {
      if (scrolled[index]) [box.scrollLeft, box.scrollTop] = scrolled[index];
    }
    if (focused) refocus(focused);
  }

  function refocus(focused) {
    const same = [...part.querySelectorAll(focused.localName)].find((element) =>
      focused.id ? element.id === focused.id
        : focused.href ? element.href === focused.href
        : element.closest("[id]")?.id === focused.closest?.("[id]")?.id
          && element.getAttribute("aria-labelledby") === focused.getAttribute("aria-labelledby"));
    same?.focus({ preventScroll: true });
  }

  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    isOn = !isOn;
    toggle.setAttribute("aria-pressed", String(isOn));
    status.textContent = "";
    if (isOn) poll();
    else clearTimeout(timer);
  });
  document.addEventListener("visibilitychange", () => {
    if (isOn && document.visibilityState === "visible") poll();
  });
  schedule();
}
