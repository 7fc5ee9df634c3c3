// Everything works without this script; it adds copy buttons and suggestions while typing.
"use strict";

for (const button of document.querySelectorAll("button[data-copy]")) {
  const status = button.nextElementSibling;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      status.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(source);
      status.textContent = "Selected; press Ctrl+C or ⌘C to copy.";
    }
  });
}

document.querySelector(".burger").addEventListener("keydown", ({ key, currentTarget: menu }) => {
  if (key !== "Escape" || !menu.open) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

for (const form of document.querySelectorAll("form[data-suggest]")) {
  const input = form.querySelector("input");
  const list = document.createElement("ul");
  const status = document.createElement("span");
  list.className = "suggestions";
  list.hidden = true;
  status.className = "away";
  status.setAttribute("role", "status");
  form.append(list, status);
  let asked = 0;

  const close = () => {
    list.hidden = true;
    list.replaceChildren();
    status.textContent = "";
  };

  const show = (found) => {
    list.replaceChildren(...found.map(({ title, path }) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = form.dataset.root + path;
      link.textContent = title;
      link.dir = "auto";
      item.append(link);
      return item;
    }));
    list.hidden = found.length === 0;
    const count = `${found.length} suggestion${found.length === 1 ? "" : "s"}`;
    status.textContent = found.length ? `${count}; arrow down to choose.` : "No suggestions.";
  };

  const suggest = async () => {
    const query = input.value.trim();
    const turn = ++asked;
    if (query.length < 2) return close();
    try {
      const answer = await fetch(`${form.dataset.suggest}?q=${encodeURIComponent(query)}`);
      if (turn === asked) show(answer.ok ? await answer.json() : []);
    } catch {
      if (turn === asked) close();
    }
  };

  let timer;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(suggest, 120);
  });

  form.addEventListener("keydown", (event) => {
    const stops = [input, ...list.querySelectorAll("a")];
    const here = stops.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      input.focus();
      close();
    } else if (step && here >= 0 && !list.hidden) {
      event.preventDefault();
      stops[(here + step + stops.length) % stops.length].focus();
    }
  });

  form.addEventListener("focusout", (event) => {
    if (!form.contains(event.relatedTarget)) close();
  });
}
