// Cells that are edited as text: a dot-bracket, the rows of an alignment. The cells of a passage are edited together, a line each;
// a kind of text knows what is wrong with such lines, and where two of them differ.

const OPENING = "([{<ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const CLOSING = ")]}>abcdefghijklmnopqrstuvwxyz";
const UNPAIRED = ".,:_-~";

/** The partner of each base of a dot-bracket, or -1; throws what is wrong with it. */
function pairedBases(text) {
  const partners = Array(text.length).fill(-1);
  const waiting = new Map();
  for (let k = 0; k < text.length; k++) {
    const [opens, closes] = [OPENING.indexOf(text[k]), CLOSING.indexOf(text[k])];
    if (opens >= 0) waiting.set(opens, [...(waiting.get(opens) ?? []), k]);
    else if (closes >= 0) {
      const from = waiting.get(closes)?.pop();
      if (from === undefined) throw new Error(`The bracket ${text[k]} at ${k + 1} closes none that was opened.`);
      [partners[from], partners[k]] = [k, from];
    } else if (!UNPAIRED.includes(text[k])) throw new Error(`${text[k]} at ${k + 1} is no bracket and no dot.`);
  }
  for (const [kind, left] of waiting) {
    if (left.length) throw new Error(`The bracket ${OPENING[kind]} at ${left.at(-1) + 1} is never closed.`);
  }
  return partners;
}

const bare = (row) => row.replace(/[-.]/g, "");

/** What stands opposite each letter of a row, numbered without gaps, or -1; by column, null at gaps. */
function opposite(row, other) {
  let after = -1;
  return [...row].map((letter, k) => {
    const there = k < other.length && !"-.".includes(other[k]);
    if (there) after += 1;
    return "-.".includes(letter) ? null : there ? after : -1;
  });
}

/** The columns of a row whose letters have something else opposite them than in another pair of rows. */
function movedLetters(row, other, row2, other2) {
  const there = opposite(row2, other2).filter((place) => place !== null);
  let letter = -1;
  const moved = opposite(row, other).map((place) => place !== null && place !== there[++letter]);
  return new Set(moved.flatMap((is, k) => (is ? [k] : [])));
}

const DOT_BRACKET = {
  inColumns: true, // column k of all lines, those above too, is about one thing
  /** What is wrong with cells; nothing, if they are fine. */
  check([structure], [given]) {
    if (structure.length !== given.length) return `The structure has ${structure.length} characters, and must have ${given.length}.`;
    try {
      pairedBases(structure);
    } catch (error) {
      return error.message;
    }
    return "";
  },
  /** Of each cell, the columns where it differs from another. */
  marks([structure], [other]) {
    const [ours, theirs] = [pairedBases(structure), pairedBases(other)];
    return [new Set(ours.flatMap((partner, k) => (partner !== theirs[k] ? [k] : [])))];
  },
};

const ALIGNMENT = {
  inColumns: false,
  check([first, second, core], [given1, given2]) {
    for (const [row, given] of [[first, given1], [second, given2]]) {
      if (/\s/.test(row)) return "A row has no blanks in it.";
      if (bare(row) !== bare(given)) return `${row} does not have the letters ${bare(given)}: only gaps may change.`;
    }
    if (first.length !== second.length) return `The rows have ${first.length} and ${second.length} columns, and must have as many as each other.`;
    if ([...first].some((letter, k) => "-.".includes(letter) && "-.".includes(second[k]))) return "Both rows have a gap in one column.";
    if (core !== undefined && (core.length !== first.length || /[^01]/.test(core))) return `The line core must have 0 or 1 for each of the ${first.length} columns.`;
    return "";
  },
  marks([first, second, core], [first2, second2]) {
    const found = [movedLetters(first, second, first2, second2), movedLetters(second, first, second2, first2)];
    return core === undefined ? found : [...found, new Set()];
  },
};

for (const [name, kind] of [["dot-bracket", DOT_BRACKET], ["alignment", ALIGNMENT]]) {
  SHAPES[name] = {
    text: (passage, text) => text,
    pair: (given, believed, item) => `${kind.marks(...givenAndBelieved(item))[0].size} places`,
    unique: true,
    view: (item, passage, labels) => textView(kind, item, passage, labels),
    drawn: () => {},
    editor: (item, passage, labels) => textEditor(kind, item, passage, labels),
    refusal: (item, labels) => kind.check(labels, givenAndBelieved(data.items[item])[0]),
  };
}

/** All cells of an item, as they are given and as they are believed. */
function givenAndBelieved({ passage, doubts }) {
  const given = data.passages[passage].given.map((k) => data.labels[k]);
  const believed = [...given];
  for (const doubt of doubts) believed[doubt.word] = data.labels[doubt.believed];
  return [given, believed];
}

// ---------------------------------------------------------------------------------------------------------------------
// What is shown
// ---------------------------------------------------------------------------------------------------------------------

/** A line of text from one column to another, with its marks. */
function textLine({ title, text, marks, kind }, from, to) {
  const pieces = [];
  for (let k = from; k < Math.min(to, text.length); k++) {
    const marked = marks.has(k);
    if (pieces.length && pieces.at(-1).marked === marked) pieces.at(-1).text += text[k];
    else pieces.push({ marked, text: text[k] });
  }
  return make(
    "div",
    { class: `line ${kind}` },
    make("span", { class: "what" }, title),
    make("code", {}, ...pieces.map((piece) => (piece.marked ? make("mark", {}, piece.text) : piece.text))),
  );
}

/** Lines below each other, cut where the card ends. */
function linesView(lines) {
  const columns = Math.max(20, Math.floor((byId("card").clientWidth - 150) / 8.5));
  const longest = Math.max(0, ...lines.map((line) => line.text.length));
  const blocks = [];
  for (let from = 0; from < Math.max(longest, 1); from += columns) {
    blocks.push(make("div", { class: "lines" }, ...lines.map((line) => textLine(line, from, from + columns))));
  }
  return blocks;
}

/** The cells of a passage as text: given, believed and, where it is neither, as decided. */
function textView(kind, item, passage, labels) {
  const [given, believed] = givenAndBelieved(data.items[item]);
  const same = (other) => labels.every((label, k) => label === other[k]);
  const versions = [["given", given, believed], ["believed", believed, given]];
  if (!same(given) && !same(believed)) versions.push(["edited", labels, given]);
  const box = make("div", { class: "passage texts" });
  const above = (passage.above ?? []).map((text) => ({ title: "", text, marks: new Set(), kind: "above" }));
  const rows = versions.map(([name, cells, others]) => {
    const marks = kind.marks(cells, others);
    const title = (k) => (kind.inColumns ? name : passage.words[k]);
    return cells.map((text, k) => ({ title: title(k), text, marks: marks[k], kind: name }));
  });
  if (kind.inColumns) box.append(...linesView([...above, ...rows.flat()]));
  else versions.forEach(([name], k) => box.append(make("h3", { class: "what" }, name), ...linesView([...above, ...rows[k]])));
  return box;
}

// ---------------------------------------------------------------------------------------------------------------------
// Editing
// ---------------------------------------------------------------------------------------------------------------------

/** All cells of a passage in one field, a line each. */
function textEditor(kind, item, passage, labels) {
  const [given, believed] = givenAndBelieved(data.items[item]);
  const longest = Math.max(...labels.map((label) => label.length), 20); // the field does not scroll: what is above it would not
  const typed = make("textarea", { id: "typed", class: "first", rows: String(given.length), cols: String(longest + 2), wrap: "off", "aria-label": "the text", autocomplete: "off", spellcheck: "false" });
  typed.value = labels.join("\n");
  const first = Math.min(...kind.marks(given, believed)[0], longest);
  const wrong = make("p", { class: "note", role: "status" });
  const cells = () => typed.value.split("\n").map((line) => line.trim());
  const refusal = () => {
    const lines = cells();
    if (lines.length !== given.length) return `There are ${lines.length} lines, and must be ${given.length}.`;
    return kind.check(lines, given);
  };
  typed.select = () => typed.setSelectionRange(first, first); // begin where the first doubt is, and keep the rest
  typed.addEventListener("input", () => wrong.replaceChildren(refusal()));
  const set = () => {
    wrong.replaceChildren(refusal());
    if (wrong.textContent) {
      say(`That cannot stand there. ${wrong.textContent}`);
      return;
    }
    kept(state.editAll(item, cells()), `Line ${passage.line}: ${chosen(item)}.`);
    show();
    byId("typed")?.focus();
  };
  const put = (texts) => {
    typed.value = texts.join("\n");
    typed.dispatchEvent(new Event("input"));
    typed.focus();
  };
  typed.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    set();
  });
  const above = (passage.above ?? []).map((text) => make("code", { class: "ruler" }, text));
  return make(
    "div",
    { class: "editor text" },
    make("div", { class: "sheet" }, ...above, typed),
    wrong,
    make("button", { type: "button", onclick: set }, "Set ", make("kbd", {}, "Enter")),
    make("button", { type: "button", onclick: () => put(believed) }, "Believed"),
    make("button", { type: "button", onclick: () => put(given) }, "Given"),
    make("button", { type: "button", onclick: stopEditing }, "Done ", make("kbd", {}, "Esc")),
  );
}
