// Cells that are edited as text: a dot-bracket, the rows of an alignment. The cells of a passage are edited together, a line each;
// a kind of text (TEXTS, by the name in data.editor) knows what is wrong with such lines, and where two of them differ.

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

// check(cells, given): what is wrong, or nothing. marks(cells, others): of each cell, the columns where the two differ.
// inColumns: whether column k of all lines, those above too, is about one thing.
const TEXTS = {
  "dot-bracket": {
    inColumns: true,
    check([structure], [given]) {
      if (structure.length !== given.length) return `The structure has ${structure.length} characters, and must have ${given.length}.`;
      try {
        pairedBases(structure);
      } catch (error) {
        return error.message;
      }
      return "";
    },
    marks([structure], [other]) {
      const [ours, theirs] = [pairedBases(structure), pairedBases(other)];
      return [new Set(ours.flatMap((partner, k) => (partner !== theirs[k] ? [k] : [])))];
    },
  },
  alignment: {
    inColumns: false,
    check([first, second, core], [given1, given2]) {
      for (const [row, given] of [[first, given1], [second, given2]]) {
        if (/\s/.test(row)) return "A row has no blanks in it.";
        if (bare(row) !== bare(given)) return `${row} does not have the letters of ${bare(given)}: only gaps may change.`;
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
  },
};

for (const name of Object.keys(TEXTS)) {
  // no two texts are a pair of labels that comes again
  EDITORS[name] = { ...EDITORS.menu, pair: null, brief: textDifference, view: textView, doubt: () => "", editor: textEditor };
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
function textView(item, passage, labels) {
  const kind = TEXTS[data.editor];
  const [given, believed] = [state.labelsAfter(item, "g"), state.labelsAfter(item, "a")];
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

/** Which cells are other than given, in few words: for the list. */
function textDifference(item) {
  const [given, believed] = [state.labelsAfter(item, "g"), state.labelsAfter(item, "a")];
  const n = TEXTS[data.editor].marks(given, believed)[0].size;
  return `${n} differ`;
}

// ---------------------------------------------------------------------------------------------------------------------
// Editing
// ---------------------------------------------------------------------------------------------------------------------

/** All cells of a passage in one field, a line each. */
function textEditor(item, passage, labels) {
  const given = state.labelsAfter(item, "g");
  const longest = Math.max(...labels.map((label) => label.length), 20); // the field does not scroll: what is above it would not
  const typed = make("textarea", { id: "typed", class: "first", rows: String(given.length), cols: String(longest + 2), wrap: "off", "aria-label": "the text", autocomplete: "off", spellcheck: "false" });
  typed.value = labels.join("\n");
  const first = Math.min(...TEXTS[data.editor].marks(given, state.labelsAfter(item, "a"))[0], longest);
  typed.setSelectionRange(first, first); // where the first doubt is
  const wrong = make("p", { class: "note", role: "status" });
  const cells = () => typed.value.split("\n").map((line) => line.trim());
  const refusal = () => {
    const lines = cells();
    if (lines.length !== given.length) return `There are ${lines.length} lines, and must be ${given.length}.`;
    return TEXTS[data.editor].check(lines, given);
  };
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
  const put = (decision) => {
    typed.value = state.labelsAfter(item, decision).join("\n");
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
    make("button", { type: "button", onclick: () => put("a") }, "Believed"),
    make("button", { type: "button", onclick: () => put("g") }, "Given"),
    make("button", { type: "button", onclick: stopEditing }, "Done ", make("kbd", {}, "Esc")),
  );
}
