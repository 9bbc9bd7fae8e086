// Comforts only: without this script everything works, by reloading.

const menu = document.querySelector("[data-menu]");
if (menu) {
  const total = menu.querySelector(".total");
  const output = total.querySelector("output");
  const steppers = [...menu.querySelectorAll(".stepper")];
  const quantity = (input) => Math.min(Math.max(Math.trunc(Number(input.value)) || 0, 0), Number(input.max));
  const add = () => {
    const amount = steppers.reduce((sum, box) => sum + Number(box.dataset.price) * quantity(box.querySelector("input")), 0);
    output.value = `${(amount / 1000).toLocaleString("en", { minimumFractionDigits: 3 })} ${output.dataset.unit}`;
    for (const box of steppers) box.closest(".product").classList.toggle("chosen", quantity(box.querySelector("input")) > 0);
  };
  for (const box of steppers) {
    const input = box.querySelector("input");
    for (const button of box.querySelectorAll("button")) {
      button.hidden = false;
      button.addEventListener("click", () => {
        input.value = Math.min(Math.max(quantity(input) + Number(button.dataset.by), 0), Number(input.max));
        add();
      });
    }
    input.addEventListener("input", add);
  }
  total.hidden = false;
  // Also when the browser brings back what was typed before.
  addEventListener("pageshow", add);
}

const live = document.querySelector("[data-live]");
if (live) {
  const OFTEN_MS = 1000;
  const SELDOM_MS = 5000;
  const OFTEN_FOR_MS = 180_000;
  const began = Date.now();
  document.querySelector("[data-only=script]").hidden = false;
  const says = document.querySelector("[data-says]");
  // What a person reads decides whether something is new; tokens differ at every request.
  const put = (html) => {
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    const text = (part) => part.textContent.replace(/\s+/g, " ").trim();
    if (text(fresh.content) === text(live)) return;
    const isOpen = live.querySelector("details")?.open;
    const focused = live.contains(document.activeElement) ? document.activeElement.localName : null;
    const before = text(live.querySelector("h1"));
    live.replaceChildren(fresh.content);
    live.querySelector("details").open = Boolean(isOpen);
    if (focused) live.querySelector(focused)?.focus();
    const now = text(live.querySelector("h1"));
    if (now !== before) says.textContent = now;
  };
  const look = async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch(live.dataset.live, { headers: { Accept: "text/html" } });
        if (answer.ok) put(await answer.text());
      } catch {
        // The shop is away for a moment; the next look may find it.
      }
    }
    setTimeout(look, Date.now() - began < OFTEN_FOR_MS ? OFTEN_MS : SELDOM_MS);
  };
  look();
}
