// Adds a button to each block of code that copies it. Without this script, code can be selected and copied by hand.

const labels = document.body.dataset;

async function copy(pre, button) {
  try {
    await navigator.clipboard.writeText(pre.textContent);
    button.textContent = labels.copied;
  } catch {
    getSelection().selectAllChildren(pre);
    button.textContent = labels.selected;
  }
  setTimeout(() => (button.textContent = labels.copy), 4000);
}

for (const pre of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = labels.copy;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", () => copy(pre, button));
  const caption = pre.parentElement.querySelector("figcaption");
  if (caption) {
    caption.append(button);
  } else {
    const block = document.createElement("div");
    block.className = "block";
    pre.replaceWith(block);
    block.append(button, pre);
  }
}
