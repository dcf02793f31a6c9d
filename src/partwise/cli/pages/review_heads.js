// Dependency trees: the words in a row, arcs above them as the tree is now, and below them what else is said of words in doubt.
//
// A cell is "head<tab>relation": the number of the head, 0 for the root, "_" if it is not known.

const STEP = 17; // between arcs that lie above one another
const ROOM = 16; // for the relation on the highest
const SVG = "http://www.w3.org/2000/svg";
let scrolled = { item: -1, left: 0 }; // how far the sentence was moved to the side

const arcOf = (cell) => cell.split("\t");
const arcText = (head, relation) => (relation === "_" ? head : `${head}, ${relation}`);
const headName = (passage, head) => (head === "0" ? "root" : head === "_" ? "not known" : `${passage.words[head - 1]} (${head})`);

SHAPES.heads = {
  text: (passage, cell) => arcText(headName(passage, arcOf(cell)[0]), arcOf(cell)[1]),
  pair(given, believed) {
    const [before, after] = [arcOf(given)[1], arcOf(believed)[1]];
    if (before !== after) return `${before} → ${after}`;
    return before === "_" ? "another head" : `${before}, another head`;
  },
  view: treeView,
  drawn: drawArcs,
  editor: headEditor,
  refusal: (item, labels) => noTree(state.passageOf(item), state.withOthers(item, labels)),
};

// ---------------------------------------------------------------------------------------------------------------------
// Trees
// ---------------------------------------------------------------------------------------------------------------------

/** Why heads are no tree; nothing, if they are. What is not known may be anything. */
function noTree(passage, labels) {
  const heads = labels.map((cell) => arcOf(cell)[0]).map((head) => (head === "_" ? -1 : Number(head)));
  const settled = new Array(heads.length + 1).fill(0);
  for (let start = 1; start <= heads.length; start++) {
    let m = start;
    while (m > 0 && settled[m] === 0) {
      settled[m] = start;
      m = heads[m - 1];
    }
    if (m > 0 && settled[m] === start) {
      const circle = [m];
      for (let next = heads[m - 1]; next !== m; next = heads[next - 1]) circle.push(next);
      const names = [...circle, m].map((word) => passage.words[word - 1]).join(" → ");
      return `That is no tree: the heads go in a circle, ${names}. Give one of these words another head first, the root say.`;
    }
  }
  if (!heads.includes(0) && !heads.includes(-1)) return "That is no tree: no word hangs from the root.";
  return "";
}

// ---------------------------------------------------------------------------------------------------------------------
// Drawing
// ---------------------------------------------------------------------------------------------------------------------

function treeView(item, passage, labels, doubted) {
  const editable = new Set(state.editable(item));
  const row = make("div", { class: "sentence" });
  passage.words.forEach((form, k) => {
    const given = data.labels[passage.given[k]];
    const changed = labels[k] !== given;
    const classes = ["token", doubted.has(k) ? "doubted" : "", changed ? "changed" : "", editing === k ? "editing" : ""];
    const children = [make("bdi", { class: "form" }, form), make("span", { class: "label" }, String(k + 1))];
    const believed = doubted.has(k) ? `, believed ${SHAPES.heads.text(passage, data.labels[doubted.get(k).believed])}` : "";
    const said = `${form}: head ${SHAPES.heads.text(passage, labels[k])}${believed}. ${picking ? "Choose as head" : "Edit"}`;
    const usable = picking ? k !== editing : editable.has(k);
    row.append(
      usable
        ? make("button", { type: "button", class: classes.join(" "), "data-word": k, "aria-label": said, onclick: () => clickWord(item, k) }, ...children)
        : make("span", { class: classes.join(" "), "data-word": k }, ...children),
    );
  });
  const box = make("div", { class: "passage tree", dir: direction(passage.words), tabindex: 0, role: "group", "aria-label": "the tree" }, row);
  box.arcs = arcsOf(passage, labels, doubted);
  box.worst = data.items[item].doubts[0]?.word ?? 0;
  box.item = item;
  return box;
}

/** Arcs above: the tree as it is now. Below: of words in doubt, what is believed; of words that were changed, what was given. */
function arcsOf(passage, labels, doubted) {
  const above = [];
  const below = [];
  labels.forEach((cell, k) => {
    const given = data.labels[passage.given[k]];
    const believed = doubted.has(k) ? data.labels[doubted.get(k).believed] : null;
    const put = (where, text, kind, mark = "", before = "") => {
      const [head, relation] = arcOf(text);
      const name = relation === "_" ? "" : relation;
      if (head !== "_") where.push({ word: k + 1, head: Number(head), text: before + name + mark, kind });
    };
    put(above, cell, cell !== given ? "changed" : believed ? "doubted" : "");
    if (cell !== given) put(below, given, "was", "", "was ");
    if (believed !== null && cell !== believed) put(below, believed, "believed", "?");
  });
  return { above, below };
}

/** How far from the words each arc has to be: one step more than those under it. */
function levelsOf(arcs) {
  const done = [];
  for (const arc of [...arcs].filter((a) => a.head > 0).sort((a, b) => Math.abs(a.word - a.head) - Math.abs(b.word - b.head))) {
    const [low, high] = [Math.min(arc.word, arc.head), Math.max(arc.word, arc.head)];
    arc.level = 1 + Math.max(0, ...done.filter((other) => other.low < high && low < other.high).map((other) => other.level));
    done.push({ low, high, level: arc.level });
  }
  const top = Math.max(0, ...done.map((arc) => arc.level));
  for (const arc of arcs) if (arc.head === 0) arc.level = top + 1;
  return Math.max(0, ...arcs.map((arc) => arc.level));
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Where words are is known only when they are on the page. */
function drawArcs(card) {
  const box = card.querySelector(".tree");
  if (!box) return;
  const row = box.querySelector(".sentence");
  const words = [...row.children];
  const { above, below } = box.arcs;
  words.forEach((word, k) => {
    const longest = Math.max(...[...above, ...below].filter((arc) => arc.word === k + 1).map((arc) => arc.text.length), 0);
    word.style.minWidth = `${0.45 * longest + 1}rem`; // short arcs have room for their relations
  });
  const [high, deep] = [levelsOf(above), levelsOf(below)].map((levels) => (levels ? levels * STEP + ROOM : 4));
  row.style.paddingTop = `${high}px`;
  row.style.paddingBottom = `${deep}px`;
  const [width, height] = [row.offsetWidth, row.offsetHeight];
  const picture = svg("svg", { class: "arcs", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const centres = words.map((word) => word.offsetLeft + word.offsetWidth / 2);
  const draw = (arcs, base, away) => {
    for (const arc of arcs) picture.append(drawArc(arc, centres, base, away));
  };
  draw(above.filter((arc) => !arc.kind), high, -1);
  draw(above.filter((arc) => arc.kind), high, -1); // what matters lies on top
  draw(below, height - deep, 1);
  row.prepend(picture);
  if (scrolled.item !== box.item) {
    const from = box.dir === "rtl" ? width - box.clientWidth : 0; // places are counted from where a text begins, to its left below 0
    scrolled = { item: box.item, left: centres[box.worst] - box.clientWidth / 2 - from };
  }
  box.scrollLeft = scrolled.left;
  box.addEventListener("scroll", () => { scrolled.left = box.scrollLeft; });
}

function drawArc(arc, centres, base, away) {
  const x = centres[arc.word - 1];
  const y = base + away * arc.level * STEP;
  const group = svg("g", { class: `arc ${arc.kind}` });
  const tip = `M${x - 3.5},${base + away * 7} L${x},${base + away} L${x + 3.5},${base + away * 7}`;
  if (arc.head === 0) {
    group.append(svg("path", { d: `M${x},${y} L${x},${base + away}` }), svg("path", { d: tip }));
    group.append(svg("text", { x: x + 5, y: y + (away > 0 ? 2 : 6) }, arc.text || "root"));
    return group;
  }
  const side = Math.sign(x - centres[arc.head - 1]);
  const from = centres[arc.head - 1] + 5 * side;
  const bend = Math.min(8, Math.abs(x - from) / 2);
  group.append(
    svg("path", { d: `M${from},${base} L${from},${y - away * bend} Q${from},${y} ${from + side * bend},${y} L${x - side * bend},${y} Q${x},${y} ${x},${y - away * bend} L${x},${base + away}` }),
    svg("path", { d: tip }),
    svg("text", { x: (from + x) / 2, y: y + (away > 0 ? 11 : -4), "text-anchor": "middle" }, arc.text),
  );
  return group;
}

// ---------------------------------------------------------------------------------------------------------------------
// Editing
// ---------------------------------------------------------------------------------------------------------------------

function clickWord(item, k) {
  if (picking && editing >= 0) setArc(item, editing, String(k + 1), arcOf(state.labelsOf(item)[editing])[1]);
  else editWord(k);
}

/** The head and the relation of a word, if that leaves a tree. */
function setArc(item, word, head, relation) {
  const passage = state.passageOf(item);
  const names = data.labels.slice(0, data.menu);
  const [before, was] = arcOf(state.labelsOf(item)[word]);
  if (head !== before && relation === was && head === "0" && names.includes("root")) relation = "root";
  const labels = state.labelsOf(item);
  labels[word] = `${head}\t${relation}`;
  const wrong = SHAPES.heads.refusal(item, labels);
  if (wrong) {
    say(wrong);
    byId("head").value = before;
    return;
  }
  const roots = labels.filter((cell) => arcOf(cell)[0] === "0").length;
  const more = roots > 1 ? ` ${roots} words hang from the root now.` : head !== "0" && relation === "root" ? " Choose its relation, too." : "";
  picking = false;
  kept(state.edit(item, word, labels[word]), `${passage.words[word]}: ${SHAPES.heads.text(passage, labels[word])}.${more}`);
  show();
  byId("relation")?.focus();
}

/** Menus of heads and of relations. */
function headEditor(item, passage, labels, doubted) {
  const word = editing;
  const [head, relation] = arcOf(labels[word]);
  const option = (value, text) => make("option", { value }, text);
  const words = passage.words.map((form, k) => (k === word ? null : option(String(k + 1), `${k + 1} ${form}`))).filter((one) => one);
  const heads = make("select", { id: "head", class: "first", "aria-label": "its head" }, head === "_" ? option("_", "not known") : "", option("0", "root"), ...words);
  heads.value = head;
  heads.addEventListener("change", () => setArc(item, word, heads.value, relation));
  const known = data.labels.slice(0, data.menu);
  const names = known.includes(relation) ? known : [relation, ...known];
  const relations = make("select", { id: "relation", "aria-label": "its relation" }, ...names.map((name) => option(name, name)));
  relations.value = relation;
  relations.addEventListener("change", () => setArc(item, word, head, relations.value));
  const doubt = doubted.get(word);
  const whole = (cell) => () => setArc(item, word, ...arcOf(cell));
  const pick = () => {
    picking = !picking;
    showCard();
  };
  return make(
    "div",
    { class: "editor" },
    make("bdi", { class: "form" }, passage.words[word]),
    make("label", {}, "head ", heads),
    known.length ? make("label", {}, "relation ", relations) : "",
    make("button", { type: "button", id: "pick", "aria-pressed": String(picking), onclick: pick }, picking ? "Click its head above" : "Choose by click"),
    doubt ? make("button", { type: "button", onclick: whole(data.labels[doubt.believed]) }, "Believed") : "",
    make("button", { type: "button", onclick: whole(data.labels[passage.given[word]]) }, "Given"),
    make("button", { type: "button", onclick: stopEditing }, "Done ", make("kbd", {}, "Esc")),
  );
}
