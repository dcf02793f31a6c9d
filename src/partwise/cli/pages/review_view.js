// What the page shows: one suspect at a time, a list of all. Every value from the data is put in place as text, never as HTML.

const PAGE = 50; // rows of the list at a time
const LONG = 160; // words; of longer passages, only what is near doubts is shown at first
const NEAR = 25;

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const state = new Decided(data, browserStorage());
let order = []; // numbers of the items that are shown, as filters say
let place = 0; // of the current one in `order`
let editing = -1; // the word whose label is being edited, or -1
let picking = false; // whether a click on another word chooses it as the head of that one
let opened = new Set(); // gaps of the current passage that were opened

/** What differs by the shape of outputs: how a passage looks, is edited, and what may not be. Other files add theirs. */
const SHAPES = {
  labels: {
    text: (passage, label, other) => shownLabel(label), // a cell, for people, where another stands against it
    pair: (given, believed, item) => `${shownLabel(given)} → ${shownLabel(believed)}`, // what a doubt is about, in a few letters
    unique: false, // whether no pair comes again, so that there is none to look for
    view: passageView,
    drawn: () => {}, // called when it is on the page
    editor: (...given) => editor(...given),
    refusal: () => "", // why an item must not have these labels
  },
};
const shape = () => SHAPES[data.shape];

function browserStorage() {
  try {
    return window.localStorage;
  } catch {
    return { getItem: () => null, setItem: () => { throw new Error("there is none"); } };
  }
}

/** An element with attributes and children; strings become text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function say(text) {
  byId("message").textContent = text;
}

const shownLabel = (label) => (label === "" ? "(empty)" : label);
const percent = (p) => `${(100 * p).toFixed(1)} %`;
const lineOf = (item) => `Line ${state.passageOf(item).line.toLocaleString("en")}`;
const current = () => (order.length ? order[place] : -1);

// ---------------------------------------------------------------------------------------------------------------------
// Filters
// ---------------------------------------------------------------------------------------------------------------------

const pairOf = (item, doubt) => shape().pair(data.labels[data.passages[item.passage].given[doubt.word]], data.labels[doubt.believed], item);

function fillPairs() {
  byId("pair").parentElement.hidden = shape().unique === true;
  const counts = new Map();
  for (const item of data.items) {
    for (const pair of new Set(item.doubts.map((doubt) => pairOf(item, doubt)))) counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  const options = [...counts].sort((a, b) => b[1] - a[1]).map(([pair, n]) => make("option", { value: pair }, `${pair} (${n})`));
  byId("pair").replaceChildren(make("option", { value: "" }, "all pairs"), ...options);
}

function matches(item, number, wanted, pair, only) {
  const decided = state.choices.has(number);
  if ((only === "open" && decided) || (only === "done" && !decided)) return false;
  if (pair && !item.doubts.some((doubt) => pairOf(item, doubt) === pair)) return false;
  if (!wanted) return true;
  const passage = data.passages[item.passage];
  passage.sought ??= [passage.words.join(" "), ...(passage.above ?? []), ...(passage.fields ?? []).map(([, value]) => value)].join(" ").toLowerCase();
  const labels = () => item.doubts.flatMap((doubt) => [passage.given[doubt.word], doubt.believed]).map((k) => data.labels[k]);
  return passage.sought.includes(wanted) || labels().some((label) => label.toLowerCase().includes(wanted));
}

/** Which items are shown; the current one stays where it can. */
function filter() {
  const before = current();
  const [wanted, pair, only] = [byId("search").value.trim().toLowerCase(), byId("pair").value, byId("state").value];
  order = data.items.map((_, k) => k).filter((k) => matches(data.items[k], k, wanted, pair, only));
  place = Math.max(0, order.indexOf(before));
  leaveEditing();
  show();
}

// ---------------------------------------------------------------------------------------------------------------------
// What is shown
// ---------------------------------------------------------------------------------------------------------------------

function show() {
  showProgress();
  showCard();
  showList();
}

function showProgress() {
  const [n, all] = [state.choices.size, data.items.length];
  byId("progress").max = Math.max(all, 1);
  byId("progress").value = n;
  byId("count").textContent = `${n.toLocaleString("en")} of ${all.toLocaleString("en")} decided`;
  const left = order.length === all ? "" : ` of ${all.toLocaleString("en")}`;
  byId("where").textContent = order.length ? `${(place + 1).toLocaleString("en")} / ${order.length.toLocaleString("en")}${left}` : "none";
}

const CHOSEN = { a: "accepted", g: "kept" };
const chosen = (item) => (state.choices.has(item) ? (CHOSEN[state.choices.get(item)] ?? "edited") : "");

function showList() {
  const first = place - (place % PAGE);
  const rows = order.slice(first, first + PAGE).map((item, k) => {
    const { passage, doubts, wrong } = data.items[item];
    const { words, line } = data.passages[passage];
    const doubt = doubts[0];
    const pair = doubt ? pairOf(data.items[item], doubt) : "";
    const word = doubt ? words[doubt.word] : words[0];
    const row = make(
      "button",
      { type: "button", class: "row", "aria-current": first + k === place ? "true" : false, onclick: () => go(first + k) },
      make("span", { class: "mark", "aria-label": chosen(item) || "not decided" }, { accepted: "✓", kept: "=", edited: "✎" }[chosen(item)] ?? "·"),
      make("bdi", { class: "word" }, word || `line ${line}`),
      make("bdi", { class: "pair" }, pair),
      make("span", { class: "wrong" }, percent(wrong)),
    );
    return make("li", {}, row);
  });
  const list = byId("list");
  const focused = list.contains(document.activeElement);
  list.replaceChildren(...rows);
  const row = list.querySelector("[aria-current]");
  if (focused) row?.focus({ preventScroll: true });
  if (row) {
    const [top, bottom] = [row.offsetTop - list.offsetTop, row.offsetTop - list.offsetTop + row.offsetHeight];
    list.scrollTop = Math.min(Math.max(list.scrollTop, bottom - list.clientHeight), top); // without moving the page
  }
  byId("back").disabled = first === 0;
  byId("on").disabled = first + PAGE >= order.length;
}

/** The card anew; a button that has the focus keeps it. */
function showCard() {
  const [card, active] = [byId("card"), document.activeElement];
  const focused = card.contains(active) && active !== card;
  fillCard(card, current());
  shape().drawn(card);
  if (!focused) return;
  const again = active.id ? byId(active.id) : null;
  (again && !again.disabled ? again : card).focus({ preventScroll: true });
}

function fillCard(card, item) {
  if (item < 0) {
    const none = data.items.length ? "No suspect fits the search and the filters." : "There are no suspects: the model believes every label.";
    card.replaceChildren(make("p", { class: "none" }, none));
    return;
  }
  const { wrong, doubts } = data.items[item];
  const passage = state.passageOf(item);
  const labels = state.withOthers(item, state.labelsOf(item));
  const doubted = new Map(doubts.map((doubt) => [doubt.word, doubt]));
  card.replaceChildren(
    make(
      "div",
      { class: "title" },
      make("h2", {}, lineOf(item)),
      make("span", { class: "wrong", title: "the probability that there is a mistake here" }, `wrong: ${percent(wrong)}`),
      make("span", { class: `chosen ${chosen(item)}` }, chosen(item) || "not decided"),
    ),
    shape().view(item, passage, labels, doubted),
    fieldsView(passage),
    make(
      "div",
      { class: "choices" },
      make("button", { type: "button", id: "accept", onclick: () => decide("a") }, "Accept ", make("kbd", {}, "a")),
      make("button", { type: "button", id: "keep", onclick: () => decide("g") }, "Keep given ", make("kbd", {}, "g")),
      make("button", { type: "button", id: "edit", onclick: startEditing }, "Edit ", make("kbd", {}, "e")),
      make("button", { type: "button", id: "previous", disabled: place === 0, onclick: () => go(place - 1) }, "Previous ", make("kbd", {}, "k")),
      make("button", { type: "button", id: "next", disabled: place + 1 >= order.length, onclick: () => go(place + 1) }, "Next ", make("kbd", {}, "j")),
      make("button", { type: "button", id: "undo", disabled: !state.history.length, onclick: undo }, "Undo ", make("kbd", {}, "u")),
    ),
    editing >= 0 ? shape().editor(item, passage, labels, doubted) : "",
    ...(shape().unique ? [] : doubts).map((doubt) => doubtView(passage, doubt)),
    data.reasons ? make("p", { class: "note" }, data.reasons) : "",
  );
}

const LETTER = /\p{L}/u;
const FROM_THE_RIGHT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/** Which way a passage runs: as its first letter does. (dir="auto" does not look into words that are kept apart.) */
function direction(words) {
  const first = words.map((word) => word.match(LETTER)?.[0]).find((letter) => letter);
  return first && FROM_THE_RIGHT.test(first) ? "rtl" : "ltr";
}

const COLOURS = 8; // that labels of pictures have, in turn

/** A picture: its pixels row by row, each in the colour of its label; what is in doubt has a frame. */
function pictureView(item, passage, labels, doubted) {
  const editable = new Set(state.editable(item));
  const rows = [];
  for (let k = 0; k < passage.words.length; k++) {
    if (k % passage.width === 0) rows.push(make("div", { class: "pixels" }));
    const [doubt, changed] = [doubted.get(k), labels[k] !== data.labels[passage.given[k]]];
    const colour = data.labels.indexOf(labels[k]) % COLOURS;
    const classes = ["pixel", `colour${colour}`, doubt ? "doubted" : "", changed ? "changed" : "", editing === k ? "editing" : ""];
    const about = `${passage.words[k]}: ${shownLabel(labels[k])}${doubt ? `, believed ${shownLabel(data.labels[doubt.believed])}` : ""}`;
    const attributes = { class: classes.join(" "), title: about, "aria-label": about };
    rows.at(-1).append(editable.has(k) ? make("button", { type: "button", "data-word": k, tabindex: doubt ? 0 : -1, ...attributes, onclick: () => editWord(k) }) : make("span", attributes));
  }
  const legend = data.labels.slice(0, data.menu).map((label, k) => make("span", { class: "side" }, make("span", { class: `pixel colour${k % COLOURS}` }), make("bdi", {}, shownLabel(label))));
  return make("div", { class: "passage picture", dir: "ltr" }, ...rows, make("div", { class: "sides" }, ...legend));
}

/** The words with their labels; long passages have gaps that open. */
function passageView(item, passage, labels, doubted) {
  if (passage.width) return pictureView(item, passage, labels, doubted);
  const near = new Set();
  for (const word of [...doubted.keys(), ...(editing >= 0 ? [editing] : [])]) {
    for (let k = word - NEAR; k <= word + NEAR; k++) near.add(k);
  }
  const editable = new Set(state.editable(item));
  const box = make("div", { class: "passage", dir: direction(passage.words) });
  const long = passage.words.length > LONG;
  for (let k = 0; k < passage.words.length; k++) {
    if (!long || near.has(k) || opened.has(k)) {
      box.append(wordView(passage, labels, doubted.get(k), k, editable.has(k)), " ");
      continue;
    }
    let end = k;
    while (end < passage.words.length && !near.has(end) && !opened.has(end)) end++;
    const [first, last] = [k, end];
    const open = () => {
      for (let j = first; j < Math.min(last, first + 2 * LONG); j++) opened.add(j);
      showCard();
    };
    box.append(make("button", { type: "button", class: "gap", onclick: open }, `… ${last - first} words …`), " ");
    k = end - 1;
  }
  return box;
}

function wordView(passage, labels, doubt, k, editable) {
  const given = data.labels[passage.given[k]];
  const changed = labels[k] !== given;
  const classes = ["token", doubt ? "doubted" : "", changed ? "changed" : "", editing === k ? "editing" : ""];
  const children = [make("bdi", { class: "form" }, passage.words[k])];
  if (changed) children.push(make("bdi", { class: "label was" }, shownLabel(given)));
  children.push(make("bdi", { class: "label" }, shownLabel(labels[k])));
  if (doubt && !changed) children.push(make("bdi", { class: "label believed" }, `${shownLabel(data.labels[doubt.believed])}?`));
  if (!editable) return make("span", { class: classes.join(" ") }, ...children);
  const label = `${passage.words[k]}: ${shownLabel(labels[k])}${doubt ? `, believed ${shownLabel(data.labels[doubt.believed])}` : ""}. Edit`;
  return make("button", { type: "button", class: classes.join(" "), "data-word": k, "aria-label": label, onclick: () => editWord(k) }, ...children);
}

function fieldsView(passage) {
  if (!passage.fields) return "";
  const rows = passage.fields.map(([name, value]) => make("div", {}, make("dt", {}, make("bdi", {}, name)), make("dd", {}, make("bdi", {}, value))));
  return make("dl", { class: "fields" }, ...rows);
}

/** Given, believed, how sure, why. */
function doubtView(passage, doubt) {
  const cells = [passage.given[doubt.word], doubt.believed].map((k) => data.labels[k]);
  const [given, believed] = [shape().text(passage, cells[0], cells[1]), shape().text(passage, cells[1], cells[0])];
  const sure = doubt.sure ?? [null, null];
  const side = (title, label, p) =>
    make("div", { class: "side" }, make("span", { class: "what" }, title), make("bdi", { class: "label" }, label), p === null ? "" : make("span", {}, percent(p)));
  const reasons = (doubt.why ?? []).map(([name, value]) =>
    make("tr", { class: value > 0 ? "for" : "against" }, make("td", {}, make("bdi", {}, name)), make("td", {}, (value > 0 ? "+" : "−") + Math.abs(value).toFixed(3))),
  );
  return make(
    "section",
    { class: "doubt" },
    make("h3", {}, make("bdi", {}, passage.words[doubt.word]), make("span", { class: "wrong" }, `wrong: ${percent(doubt.wrong)}`)),
    make("div", { class: "sides" }, side("given", given, sure[0]), side("believed", believed, sure[1])),
    reasons.length ? make("table", {}, make("caption", {}, "+ speaks for ", make("bdi", {}, believed), ", − for ", make("bdi", {}, given)), make("tbody", {}, ...reasons)) : "",
  );
}
