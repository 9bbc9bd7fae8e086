// The script of the console. Every page works without it, and the server checks everything again.
// Events are handled on the document, because parts of a page may be replaced while it is open.

const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

/** Announces a text to screen readers. */
function announce(text) {
  find("#said").textContent = "";
  // Cleared first, so that the same text is announced again.
  setTimeout(() => { find("#said").textContent = text; }, 50);
}

// Forms that change something are sent once, and ask for confirmation if they say so

const submitted = new Map();
const confirmed = new WeakSet();

function markSubmitted(form, button) {
  submitted.set(form, button && { button, label: [...button.childNodes] });
  if (!button?.dataset.busy) return;
  button.setAttribute("aria-busy", "true");
  button.replaceChildren(button.dataset.busy);
  announce(button.dataset.busy);
}

/** Makes forms usable again on a page that the back button restores. */
function resetSubmitted() {
  for (const { button, label } of [...submitted.values()].filter(Boolean)) {
    button.removeAttribute("aria-busy");
    button.replaceChildren(...label);
  }
  submitted.clear();
}

/** Resolves to whether the person confirms. The dialog takes its label and colour from the pressed `button`. */
function askConfirmation(question, button) {
  const template = find("#question");
  if (typeof HTMLDialogElement === "undefined" || !template) return Promise.resolve(confirm(question));
  const dialog = template.content.cloneNode(true).firstElementChild;
  const yes = find("[value=yes]", dialog);
  find("p", dialog).textContent = question;
  yes.textContent = button?.textContent.trim() || question;
  yes.classList.toggle("danger", button?.classList.contains("danger") ?? false);
  document.body.append(dialog);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}

async function confirmAndSubmit(form, button, question) {
  if (!(await askConfirmation(question, button))) return;
  confirmed.add(form);
  // For a form whose confirmation the server asks for too, on a page of its own, where there is no script.
  if (form.elements.confirmed) form.elements.confirmed.value = "yes";
  form.requestSubmit(button);
}

document.addEventListener("submit", (event) => {
  const { target: form, submitter: button } = event;
  if (event.defaultPrevented || form.method !== "post") return;
  const question = button?.dataset.confirm ?? form.dataset.confirm;
  if (submitted.has(form)) {
    event.preventDefault();
  } else if (question && !confirmed.delete(form)) {
    event.preventDefault();
    confirmAndSubmit(form, button, question);
  } else {
    markSubmitted(form, button);
  }
});

window.addEventListener("pageshow", (event) => event.persisted && resetSubmitted());

// Copying

const LABEL_RESET_MS = 2500;

async function copy(button) {
  const source = find("[data-copied-text]", button.parentElement);
  let outcome = button.dataset.done;
  try {
    await navigator.clipboard.writeText(source.textContent.trim());
  } catch {
    // Refused, or the page has no https: select the text, so that the person can copy it.
    getSelection().selectAllChildren(source);
    outcome = button.dataset.refused;
  }
  announce(outcome);
  const label = find("span", button);
  button.dataset.label ??= label.textContent;
  label.textContent = outcome;
  clearTimeout(button.labelTimer);
  button.labelTimer = setTimeout(() => { label.textContent = button.dataset.label; }, LABEL_RESET_MS);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});

// Tables that scroll sideways can be focused and scrolled with the keyboard, and have a name

function nameOf(box) {
  const heading = find("caption", box) ?? find("h2, h3", box.closest("section, details") ?? box) ?? find("h1");
  return heading?.textContent.trim() ?? "";
}

function makeReachable(box) {
  if (box.scrollWidth > box.clientWidth) {
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", nameOf(box));
  } else {
    for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
  }
}

const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => makeReachable(target.closest(".table"))));

function watchTables(root) {
  for (const box of all(".table", root)) {
    sizes.observe(box);
    if (box.firstElementChild) sizes.observe(box.firstElementChild);
  }
}

watchTables(document);
new MutationObserver((changes) => {
  const isNew = changes.some(({ addedNodes }) => [...addedNodes].some((node) => node.nodeType === Node.ELEMENT_NODE));
  if (isNew) watchTables(find("main"));
}).observe(find("main"), { childList: true, subtree: true });

// The menu closes when the window is wide enough for the sidebar; the list of applications closes when it is left

const menu = find("#menu");
matchMedia("(min-width: 62rem)").addEventListener("change", (wide) => wide.matches && menu?.matches(":popover-open") && menu.hidePopover());

const others = find("details.where");
document.addEventListener("click", (event) => {
  if (others?.open && !others.contains(event.target)) others.open = false;
});
others?.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !others.open) return;
  event.preventDefault(); // closes this, and not the menu around it
  others.open = false;
  find("summary", others).focus();
});
