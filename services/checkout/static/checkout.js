// Improves the checkout pages. Everything works without it, and the server repeats all checks.

const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Digits as customers type and paste them

const ARABIC_INDIC_ZERO = 0x0660;
const PERSIAN_ZERO = 0x06f0;

function westernDigits(text) {
  return text
    .replace(/[٠-٩]/g, (digit) => digit.charCodeAt(0) - ARABIC_INDIC_ZERO)
    .replace(/[۰-۹]/g, (digit) => digit.charCodeAt(0) - PERSIAN_ZERO);
}

const digitsOf = (text) => westernDigits(text).replace(/\D/g, "");

const inGroupsOfFour = (text) => digitsOf(text).replace(/(\d{4})(?=\d)/g, "$1 ");

function asExpiry(text, isDeleting) {
  const typed = westernDigits(text).replace(/[^\d/]/g, "");
  const [first, ...rest] = typed.split("/");
  const digits = first.length === 1 && (rest.length || first > "1") ? `0${first}${rest.join("")}` : typed.replace(/\//g, "");
  const month = digits.slice(0, 2);
  const year = digits.slice(2, 6);
  return year || (month.length === 2 && !isDeleting) ? `${month}/${year}` : month;
}

const asPhone = (text) => westernDigits(text).replace(/[^\d+ ]/g, "");

const FORMATS = {
  card_number: inGroupsOfFour,
  expiry: asExpiry,
  security_code: digitsOf,
  phone: asPhone,
  birth_year: digitsOf,
  code: digitsOf,
};

/** Formats in place and keeps the caret behind the same character. */
function formatField(input, isDeleting) {
  const formatted = FORMATS[input.dataset.kind](input.value, isDeleting);
  if (formatted === input.value) return;
  const digitsBefore = digitsOf(input.value.slice(0, input.selectionStart)).length;
  const wasAtEnd = input.selectionStart === input.value.length;
  input.value = formatted;
  let caret = formatted.length;
  if (!wasAtEnd) {
    caret = 0;
    for (let seen = 0; seen < digitsBefore && caret < formatted.length; caret += 1) {
      if (/\d/.test(formatted[caret])) seen += 1;
    }
  }
  input.setSelectionRange(caret, caret);
}

// What is wrong with a field: "missing", "wrong", "past", "prefix", or null

function isLuhn(digits) {
  const sum = [...digits].reverse().reduce((total, digit, place) => {
    const value = place % 2 ? digit * 2 : Number(digit);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}

function expiryTrouble(text) {
  const [, month, year] = /^(\d\d)\/(\d{2}|\d{4})$/.exec(text) ?? [];
  if (!month || month < 1 || month > 12) return "wrong";
  const today = new Date();
  const months = (year.length === 2 ? 2000 + Number(year) : Number(year)) * 12 + Number(month);
  return months < today.getFullYear() * 12 + today.getMonth() + 1 ? "past" : null;
}

/** A mobile number is right if the chosen wallet takes its prefix. */
function phoneTrouble(text, input) {
  const [, , , rest] = /^(\+?(00)?2180?|0)(9\d{8})$/.exec(text.replace(/ /g, "")) ?? [];
  if (!rest) return "wrong";
  const prefixes = chosenMethod(input.form)?.dataset.prefixes?.split(" ") ?? [];
  return prefixes.includes(`0${rest.slice(0, 2)}`) ? null : "prefix";
}

const chosenMethod = (form) => find("[name=method]:checked", form);

const wrongUnless = (isRight) => (isRight ? null : "wrong");

const CHECKS = {
  card_number: (text) => wrongUnless(/^\d{12,19}$/.test(digitsOf(text)) && isLuhn(digitsOf(text))),
  expiry: expiryTrouble,
  security_code: (text) => wrongUnless(/^\d{3,4}$/.test(text)),
  phone: phoneTrouble,
  birth_year: (text) => wrongUnless(/^(19|20)\d\d$/.test(text)),
  code: (text, input) => wrongUnless(text.length === Number(input.dataset.length)),
};

function errorOf(input) {
  const text = input.value.trim();
  const error = text ? CHECKS[input.dataset.kind](text, input) : "missing";
  return error && (input.dataset[error] ?? chosenMethod(input.form).dataset[error]);
}

/** Shows the error of a field, or none. An error that was fixed leaves the summary; only submitting adds one. */
function showError(input, message) {
  const error = document.getElementById(`${input.id}-error`);
  error.textContent = message ?? "";
  error.hidden = !message;
  if (message) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
  const link = find(`[data-summary] a[href="#${input.id}"]`);
  if (link && message) link.textContent = message;
  else if (link) leaveSummary(link);
}

function leaveSummary(link) {
  const summary = link.closest("[data-summary]");
  link.closest("li").remove();
  summary.hidden = !find("li", summary);
}

let isPointerDown = false;
window.addEventListener("pointerdown", () => { isPointerDown = true; }, true);
for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => { isPointerDown = false; }, true);

/** Delays changes of the layout until the pointer is up, so that the button being pressed does not move. */
function onceStill(action) {
  if (isPointerDown) window.addEventListener("pointerup", () => setTimeout(action), { once: true });
  else action();
}

function watchField(input) {
  input.addEventListener("input", (event) => {
    if (event.isComposing) return;
    formatField(input, event.inputType?.startsWith("delete"));
    if (input.hasAttribute("aria-invalid") && !errorOf(input)) showError(input, null);
  });
  input.addEventListener("blur", () => onceStill(() => {
    if (input.value.trim()) showError(input, errorOf(input));
  }));
}

/** Clears card and code fields, which browsers restore with the back button. */
function forgetSecrets() {
  for (const input of all("[autocomplete^=cc-], [autocomplete=one-time-code]")) {
    input.value = "";
    showError(input, null);
  }
}

function hasComeBack(event) {
  return event.persisted || performance.getEntriesByType("navigation")[0]?.type === "back_forward";
}

// The brand of a card, from its first digits

const BRANDS = [
  ["visa", /^4/, "Visa"],
  ["mastercard", /^(5[1-5]|2[2-7])/, "Mastercard"],
  ["local", /^(639499|639504)/, null],
];

function watchBrand(output) {
  const input = document.getElementById("card_number");
  const show = () => {
    const [brand, , name] = BRANDS.find(([, prefix]) => prefix.test(digitsOf(input.value))) ?? [];
    output.hidden = !brand;
    output.dataset.brand = brand ?? "";
    output.textContent = brand ? name ?? output.dataset.local : "";
  };
  input.addEventListener("input", show);
  window.addEventListener("pageshow", show);
}

// The method: fields of other methods are neither checked nor sent

function watchMethods(form) {
  const parts = all("[data-methods]", form);
  if (!parts.length) return;
  const choose = () => {
    const chosen = chosenMethod(form)?.value;
    for (const part of parts) part.disabled = !part.dataset.methods.split(" ").includes(chosen);
  };
  form.addEventListener("change", ({ target }) => {
    if (target.name !== "method") return;
    choose();
    all('[data-summary] a[href^="#method-"]', form).forEach(leaveSummary);
    // A field of another method has no error any more; a wallet may take a phone number that the other one does not.
    for (const input of all("[aria-invalid]", form)) {
      showError(input, input.matches(":disabled") ? null : errorOf(input));
    }
  });
  window.addEventListener("pageshow", choose);
  choose();
}

// Submitting a form: checked first, and only once

function summarise(form, errors) {
  const summary = find("[data-summary]", form);
  if (!summary) return;
  find("ul", summary).replaceChildren(
    ...errors.map(([input, message]) => {
      const link = Object.assign(document.createElement("a"), { href: `#${input.id}`, textContent: message });
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
  );
  summary.hidden = !errors.length;
}

function hasErrors(form) {
  const inputs = all("[data-kind]", form).filter((input) => !input.matches(":disabled"));
  inputs.forEach((input) => formatField(input, true));
  const errors = inputs.map((input) => [input, errorOf(input)]);
  errors.forEach(([input, message]) => showError(input, message));
  const wrong = errors.filter(([, message]) => message);
  summarise(form, wrong);
  wrong[0]?.[0].focus();
  return wrong.length > 0;
}

function sendOnce(form) {
  const button = find("[type=submit]", form);
  const label = find("span", button) ?? button;
  const ready = [...label.childNodes];
  let isSent = false;

  form.addEventListener("submit", (event) => {
    if (isSent || hasErrors(form)) {
      event.preventDefault();
      return;
    }
    isSent = true;
    button.disabled = true;
    label.textContent = button.dataset.busy;
  });
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted || !isSent) return;
    isSent = false;
    button.disabled = false;
    label.replaceChildren(...ready);
  });
}

// Clocks

const LAST_HOUR_S = 3600;

const clockText = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;

/** Calls `tick` every second with the seconds left, until none are. Returns a function that stops it. */
function countDown(seconds, tick) {
  const end = Date.now() + seconds * 1000;
  const timer = setInterval(() => {
    const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    if (!left) clearInterval(timer);
    tick(left);
  }, 1000);
  return () => clearInterval(timer);
}

/** Counts down in the last hour; before it, the page shows the end time. */
function watchTimeLeft(element) {
  const [until, counting, clock] = ["until", "counting", "clock"].map((name) => find(`[data-${name}]`, element));
  countDown(Number(element.dataset.secondsLeft), (left) => {
    clock.textContent = clockText(left);
    counting.hidden = left > LAST_HOUR_S;
    if (until) until.hidden = !counting.hidden;
    if (!left) location.replace(element.dataset.url);
  });
}

function waitToSendAgain(form) {
  const button = find("button", form);
  const wait = find(".wait", form);
  button.disabled = true;
  wait.hidden = false;
  countDown(Number(form.dataset.wait), (left) => {
    find("[data-clock]", wait).textContent = clockText(left);
    wait.hidden = !left;
    if (!left) button.disabled = false;
  });
}

// A payment being confirmed

const POLL_MS = 2000;
const SLOWEST_POLL_MS = 10000;

async function isStillProcessing(url) {
  const answer = await fetch(url, {
    headers: { Accept: "application/json" },
    cache: "no-store",
    signal: AbortSignal.timeout?.(SLOWEST_POLL_MS),
  });
  if (!answer.ok) throw new Error(`state: ${answer.status}`);
  return (await answer.json()).state === "processing";
}

function followState({ dataset: { stateUrl, url } }) {
  const ask = async (pause) => {
    let next = POLL_MS;
    try {
      if (!(await isStillProcessing(stateUrl))) {
        location.replace(url);
        return;
      }
    } catch {
      next = Math.min(pause * 2, SLOWEST_POLL_MS);
    }
    setTimeout(ask, next, next);
  };
  setTimeout(ask, POLL_MS, POLL_MS);
}

// The receipt

function goOn(element) {
  const sentences = find("template", element).content.children;
  const message = find("p", element);
  const stop = countDown(sentences.length, (left) => {
    if (left) message.textContent = sentences[left - 1].textContent;
    else location.assign(find("[data-return]").getAttribute("href"));
  });
  const stay = () => {
    stop();
    element.hidden = true;
  };
  const button = find("[data-stay]", element);
  button.hidden = false;
  button.addEventListener("click", stay);
  window.addEventListener("beforeprint", stay);
}

function offerPrint(button) {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}

all("[data-kind]").forEach(watchField);
window.addEventListener("pageshow", (event) => hasComeBack(event) && forgetSecrets());
all("[data-brands]").forEach(watchBrand);
all("form[data-once]").forEach(watchMethods);
all("form[data-once]").forEach(sendOnce);
all("[data-seconds-left]").forEach(watchTimeLeft);
all("form[data-wait]").forEach(waitToSendAgain);
all("[data-state-url]").forEach(followState);
all("[data-goes-on]").forEach(goOn);
all("[data-print]").forEach(offerPrint);
