// What keys and buttons do: editing, moving, deciding, handing out. The page begins at the end of this file.

// ---------------------------------------------------------------------------------------------------------------------
// Editing
// ---------------------------------------------------------------------------------------------------------------------

/** A menu of labels, and a line to type another. */
function editor(item, passage, labels, doubted) {
  const here = labels[editing];
  const known = data.labels.slice(0, data.menu);
  const names = known.includes(here) ? known : [here, ...known];
  const menu = make("select", { id: "menu", "aria-label": "label, from a menu" }, ...names.map((name) => make("option", { value: name }, shownLabel(name))));
  menu.value = here;
  const typed = make("input", { id: "typed", class: "first", type: "text", "aria-label": "label, typed", autocomplete: "off", spellcheck: "false", dir: "auto" });
  typed.value = /[\r\n]/.test(here) ? "" : here; // a line cannot hold several: those are in the menu
  const word = editing;
  const set = (label) => {
    const wrong = state.refusal(label);
    if (wrong) {
      say(`“${label}” cannot stand there. ${wrong}`);
      return;
    }
    kept(state.edit(item, word, label), `${passage.words[word]}: ${shownLabel(label)}`);
    show();
    byId("typed")?.focus();
  };
  menu.addEventListener("change", () => set(menu.value));
  typed.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing) set(typed.value);
  });
  const doubt = doubted.get(word);
  return make(
    "div",
    { class: "editor" },
    make("bdi", { class: "form" }, passage.words[word]),
    make("label", {}, "menu ", menu),
    make("label", {}, "or type ", typed),
    make("button", { type: "button", onclick: () => set(typed.value) }, "Set"),
    doubt ? make("button", { type: "button", onclick: () => set(data.labels[doubt.believed]) }, "Believed") : "",
    make("button", { type: "button", onclick: () => set(data.labels[passage.given[word]]) }, "Given"),
    make("button", { type: "button", onclick: stopEditing }, "Done ", make("kbd", {}, "Esc")),
  );
}

function startEditing() {
  const item = current();
  if (item < 0) return;
  editWord(data.items[item].doubts[0]?.word ?? state.editable(item)[0]);
}

function editWord(word) {
  editing = word;
  picking = true;
  showCard();
  const field = document.querySelector(".editor .first");
  field.focus();
  field.select?.();
}

function leaveEditing() {
  editing = -1;
  picking = false;
  opened = new Set();
}

function stopEditing() {
  editing = -1;
  picking = false;
  showCard();
  byId("card").focus();
}

// ---------------------------------------------------------------------------------------------------------------------
// Moving and deciding
// ---------------------------------------------------------------------------------------------------------------------

function go(to) {
  if (!order.length) return;
  place = Math.min(Math.max(to, 0), order.length - 1);
  leaveEditing();
  show();
  byId("card").scrollIntoView({ block: "nearest" });
  document.querySelector(".passage:not(.tree) .doubted")?.scrollIntoView({ block: "nearest" });
}

function kept(saved, text) {
  say(saved ? text : "The browser cannot keep this: download the decisions before you close the page.");
}

function decide(decision) {
  const item = current();
  if (item < 0) return;
  const wrong = shape().refusal(item, state.labelsAfter(item, decision));
  if (wrong) {
    say(wrong);
    return;
  }
  const saved = state.decide(item, decision);
  const last = state.choices.size === data.items.length ? " All are decided: download the decisions." : "";
  kept(saved, `${lineOf(item)}: ${CHOSEN[decision]}.${last}`);
  if (place + 1 < order.length) go(place + 1);
  else {
    leaveEditing();
    show();
  }
}

function undo() {
  const item = state.undo();
  if (item < 0) {
    say("There is nothing to undo.");
    return;
  }
  const at = order.indexOf(item);
  if (at >= 0) go(at);
  else show();
  say(`${lineOf(item)}: undone.`);
}

// ---------------------------------------------------------------------------------------------------------------------
// What is handed out
// ---------------------------------------------------------------------------------------------------------------------

function download() {
  const url = URL.createObjectURL(new Blob([state.asJson()], { type: "application/json" }));
  const link = make("a", { href: url, download: `${data.file.name}.decisions.json` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  say(`Then: partwise repair ${data.file.name} ${data.file.name}.decisions.json -o corrected`);
}

async function load() {
  const [file] = byId("file").files;
  if (!file) return;
  try {
    say(`Took over ${state.take(await file.text())} decisions.`);
  } catch (error) {
    say(error.message);
  }
  byId("file").value = "";
  show();
}

async function copyCorrected() {
  const text = JSON.parse(byId("text").textContent);
  if (text === null) {
    say("The file is too large to be in this page: download the decisions and run partwise repair.");
    return;
  }
  const corrected = state.corrected(text);
  try {
    await navigator.clipboard.writeText(corrected);
    say(`Copied ${data.file.name}, corrected.`);
  } catch {
    const box = make("textarea", { "aria-label": "the corrected file" });
    box.value = corrected;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    if (done) box.remove();
    say(done ? `Copied ${data.file.name}, corrected.` : "The browser does not let this page copy: the text stands below.");
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Keys
// ---------------------------------------------------------------------------------------------------------------------

function toggleKeys() {
  byId("keys").hidden = !byId("keys").hidden;
  byId("help").setAttribute("aria-expanded", String(!byId("keys").hidden));
}

const KEYS = {
  j: () => go(place + 1),
  k: () => go(place - 1),
  a: () => decide("a"),
  g: () => decide("g"),
  e: startEditing,
  u: undo,
  "/": () => byId("search").focus(),
  "?": toggleKeys,
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const typing = event.target.closest?.("input, select, textarea, .editor"); // letters are letters there
  if (event.key === "Escape") {
    if (editing >= 0) stopEditing();
    else event.target.blur();
    return;
  }
  if (typing || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
}

function begin() {
  byId("said").textContent = data.said;
  fillPairs();
  let waiting = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 150);
  });
  byId("pair").addEventListener("change", filter);
  byId("state").addEventListener("change", filter);
  byId("load").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", load);
  byId("download").addEventListener("click", download);
  byId("copy").addEventListener("click", copyCorrected);
  byId("help").addEventListener("click", toggleKeys);
  byId("back").addEventListener("click", () => go(place - (place % PAGE) - PAGE));
  byId("on").addEventListener("click", () => go(place - (place % PAGE) + PAGE));
  document.addEventListener("keydown", pressed);
  window.addEventListener("storage", (event) => {
    if (event.key !== state.key) return; // the same page in another tab
    state.load();
    show();
  });
  filter();
  const open = order.findIndex((item) => !state.choices.has(item));
  if (state.choices.size && open > 0) go(open);
}

begin();
