// What stands in [data-live] shows what is new by itself, while somebody looks at it.

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

  const plan = () => {
    clearTimeout(timer);
    if (isOn && document.visibilityState === "visible") timer = setTimeout(look, pause);
  };

  const end = (words) => {
    isOn = false;
    toggle.setAttribute("aria-pressed", "false");
    toggle.hidden = true;
    status.textContent = words;
  };

  async function look() {
    clearTimeout(timer);
    try {
      const answer = await fetch(location.href, {
        headers: { "X-Part": part.dataset.live },
        redirect: "manual",
        cache: "no-store",
      });
      if (answer.type === "opaqueredirect" || answer.status === 401) return end(status.dataset.ended);
      if (!answer.ok) throw new Error(String(answer.status));
      show(await answer.text());
      pause = every;
      status.textContent = "";
    } catch {
      pause = Math.min(2 * pause, longest);
      status.textContent = status.dataset.away;
    }
    plan();
  }

  function show(html) {
    if (!isOn || html === known) return;
    const isFirst = known === null;
    known = html;
    const made = document.createElement("div");
    made.innerHTML = html;
    if (isFirst && made.textContent.trim() === part.textContent.trim()) return;
    if (isInUse()) {
      known = null; // looked at again next time
      return;
    }
    if (made.querySelector("[data-final]")) return location.reload();
    swap(made);
  }

  // Somebody marks text in it, perhaps to copy it.
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
    if (isOn) look();
    else clearTimeout(timer);
  });
  document.addEventListener("visibilitychange", () => {
    if (isOn && document.visibilityState === "visible") look();
  });
  plan();
}
