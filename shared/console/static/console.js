// Makes pages quicker and kinder. Everything works without it, and the server checks all of it again.
// It listens on the document, for parts of a page may be replaced while it is open.

const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

/** To those who listen to the page. */
function say(text) {
  find("#said").textContent = "";
  // Anew, even when it is the same again.
  setTimeout(() => { find("#said").textContent = text; }, 50);
}

// Each form that changes something is sent once, and asks first where it says so

const sent = new Map();
const agreed = new WeakSet();

function send(form, button) {
  sent.set(form, button && { button, label: [...button.childNodes] });
  if (!button?.dataset.busy) return;
  button.setAttribute("aria-busy", "true");
  button.replaceChildren(button.dataset.busy);
  say(button.dataset.busy);
}

/** Pages that the back button brings back as they were can be used again. */
function takeBack() {
  for (const { button, label } of [...sent.values()].filter(Boolean)) {
    button.removeAttribute("aria-busy");
    button.replaceChildren(...label);
  }
  sent.clear();
}

/** Resolves to whether the person agrees; `button` is what they pressed, and lends its words and its colour. */
function ask(question, button) {
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

async function askFirst(form, button, question) {
  if (!(await ask(question, button))) return;
  agreed.add(form);
  form.requestSubmit(button);
}

document.addEventListener("submit", (event) => {
  const { target: form, submitter: button } = event;
  if (event.defaultPrevented || form.method !== "post") return;
  const question = button?.dataset.confirm ?? form.dataset.confirm;
  if (sent.has(form)) {
    event.preventDefault();
  } else if (question && !agreed.delete(form)) {
    event.preventDefault();
    askFirst(form, button, question);
  } else {
    send(form, button);
  }
});

window.addEventListener("pageshow", (event) => event.persisted && takeBack());

// Copying

const LABEL_BACK_AFTER_MS = 2500;

async function copy(button) {
  const source = find("[data-copied-text]", button.parentElement);
  let outcome = button.dataset.done;
  try {
    await navigator.clipboard.writeText(source.textContent.trim());
  } catch {
    // Refused, or not on a page without https: the person copies what we have selected for them.
    getSelection().selectAllChildren(source);
    outcome = button.dataset.refused;
  }
  say(outcome);
  const label = find("span", button);
  button.dataset.label ??= label.textContent;
  label.textContent = outcome;
  clearTimeout(button.labelBack);
  button.labelBack = setTimeout(() => { label.textContent = button.dataset.label; }, LABEL_BACK_AFTER_MS);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});

// Tables that scroll sideways can be reached and scrolled with the keyboard, and have a name

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

// The menu goes where there is room for the sections beside the page; the list of applications when it is left

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
