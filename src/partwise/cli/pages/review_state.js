// What is decided about the suspects: pure data, no document. The page (review_view.js) shows it.
//
// A decision is "a" (what is believed is accepted), "g" (what is given is kept), or an object {word: label} of edited words.

class Decided {
  constructor(data, storage) {
    this.data = data;
    this.storage = storage;
    this.key = `partwise-review-${data.page}`;
    this.choices = new Map(); // number of an item -> decision
    this.history = []; // [item, decision before]
    this.load();
  }

  // -- one item -------------------------------------------------------------------------------------------------------

  passageOf(item) {
    return this.data.passages[this.data.items[item].passage];
  }

  /** Labels of an item as decided, word by word; what is not decided is as it was given. */
  labelsOf(item) {
    return this.labelsAfter(item, this.choices.get(item));
  }

  labelsAfter(item, decision) {
    const labels = this.passageOf(item).given.map((k) => this.data.labels[k]);
    if (decision === "a") {
      for (const doubt of this.data.items[item].doubts) labels[doubt.word] = this.data.labels[doubt.believed];
    } else if (decision && decision !== "g") {
      for (const [word, label] of Object.entries(decision)) labels[word] = label;
    }
    return labels;
  }

  /** Labels of an item, and what is decided about others of the same passage: where single words are decided, a neighbour may be one. */
  withOthers(item, labels) {
    if (!this.together) {
      this.together = new Map(); // number of a passage -> its items
      this.data.items.forEach(({ passage }, k) => {
        if (this.together.has(passage)) this.together.get(passage).push(k);
        else this.together.set(passage, [k]);
      });
    }
    const made = [...labels];
    const given = this.labelsAfter(item, "g");
    for (const other of this.together.get(this.data.items[item].passage)) {
      if (other === item || !this.choices.has(other)) continue;
      this.labelsOf(other).forEach((label, word) => {
        if (label !== given[word] && made[word] === given[word]) made[word] = label;
      });
    }
    return made;
  }

  /** The words that may be edited. */
  editable(item) {
    if (this.data.whole) return this.passageOf(item).words.map((_, k) => k);
    return this.data.items[item].doubts.map((doubt) => doubt.word);
  }

  /** What is wrong with a label that was typed; nothing, if it is fine. */
  refusal(label) {
    if (this.data.labels.includes(label)) return "";
    return new RegExp(`^(?:${this.data.pattern})$`).test(label) ? "" : this.data.hint;
  }

  // -- deciding -------------------------------------------------------------------------------------------------------

  decide(item, decision) {
    this.history.push([item, this.choices.get(item) ?? null]);
    this.put(item, decision);
    return this.save();
  }

  /** One label of an item; the rest stays as decided. */
  edit(item, word, label) {
    const labels = this.labelsOf(item);
    labels[word] = label;
    return this.editAll(item, labels);
  }

  /** All labels of an item. What comes to the given or to the believed labels is called so. */
  editAll(item, labels) {
    const given = this.labelsAfter(item, "g");
    const believed = this.labelsAfter(item, "a");
    const changed = Object.fromEntries(labels.map((x, k) => [k, x]).filter(([k, x]) => x !== given[k]));
    const same = (other) => labels.every((x, k) => x === other[k]);
    return this.decide(item, same(given) ? "g" : same(believed) ? "a" : changed);
  }

  put(item, decision) {
    if (decision === null) this.choices.delete(item);
    else this.choices.set(item, decision);
  }

  /** Take the last decision back; which item it was about, or -1. */
  undo() {
    const last = this.history.pop();
    if (!last) return -1;
    this.put(last[0], last[1]);
    this.save();
    return last[0];
  }

  // -- the browser's storage ------------------------------------------------------------------------------------------

  /** Whether it could be kept. */
  save() {
    try {
      this.storage.setItem(this.key, JSON.stringify({ choices: [...this.choices], history: this.history.slice(-100) }));
      return true;
    } catch {
      return false;
    }
  }

  load() {
    try {
      const kept = JSON.parse(this.storage.getItem(this.key) ?? "{}");
      const known = ([item]) => Number.isInteger(item) && item >= 0 && item < this.data.items.length;
      this.choices = new Map((kept.choices ?? []).filter(known));
      this.history = (kept.history ?? []).filter(known);
    } catch {
      this.choices = new Map();
    }
  }

  // -- what comes of it -----------------------------------------------------------------------------------------------

  /** A label as the file would have it: of CSV, quoted where it must be. */
  written(label) {
    const separator = this.data.separator;
    if (separator === null) return label;
    const plain = ![separator, '"', "\n", "\r"].some((part) => label.includes(part)) && label === label.trim();
    return plain ? label : `"${label.replaceAll('"', '""')}"`;
  }

  /** The cells that a decision changes. */
  changes(item) {
    const passage = this.passageOf(item);
    const given = this.labelsAfter(item, "g");
    const found = [];
    this.labelsOf(item).forEach((label, k) => {
      if (label === given[k]) return;
      found.push({
        line: passage.lines ? passage.lines[k] : passage.line + k,
        at: passage.at + passage.begins[k],
        from: passage.raw ? passage.raw[k] : given[k],
        to: this.written(label),
      });
    });
    return found;
  }

  /** What "download decisions" hands out, and ``partwise repair`` reads. */
  asJson() {
    const names = { a: "accept", g: "keep" };
    const decisions = [...this.choices.keys()].sort((a, b) => a - b).map((item) => ({
      item,
      line: this.passageOf(item).line,
      choice: names[this.choices.get(item)] ?? "edit",
      changes: this.changes(item),
    }));
    const { version, page, task, file, reading } = this.data;
    return JSON.stringify({ format: "partwise decisions", version, page, task, file, reading, decisions }, null, 1);
  }

  /** Take over what asJson handed out, here or on another machine; returns how many decisions, or throws what is wrong. */
  take(json) {
    let said = null;
    try {
      said = JSON.parse(json);
    } catch {
      throw new Error("That is not a file of decisions.");
    }
    if (said?.format !== "partwise decisions") throw new Error("That is not a file of decisions.");
    if (said.file.sha256 !== this.data.file.sha256) throw new Error(`Those decisions are about another file, or it has changed: ${said.file.name}.`);
    if (said.page !== this.data.page) throw new Error("Those decisions were made in another page of this file; partwise repair can apply them.");
    for (const { item, choice, changes } of said.decisions) {
      if (!(item in this.data.items)) throw new Error("That file is damaged.");
      const names = { accept: "a", keep: "g" };
      this.history.push([item, this.choices.get(item) ?? null]);
      this.put(item, names[choice] ?? this.edited(item, changes));
    }
    this.save();
    return said.decisions.length;
  }

  /** The edited words of an item, from the cells that changed. */
  edited(item, changes) {
    const { at, begins } = this.passageOf(item);
    return Object.fromEntries(changes.map((change) => [begins.indexOf(change.at - at), this.read(change.to)]));
  }

  /** A label, from what `written` made of it. */
  read(cell) {
    return this.data.separator !== null && cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
  }

  /** The whole text with all changes; places are bytes of UTF-8. */
  corrected(text) {
    const bytes = new TextEncoder().encode(text);
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    const changes = [...this.choices.keys()].flatMap((item) => this.changes(item)).sort((a, b) => a.at - b.at);
    const pieces = [];
    let after = 0;
    for (const { at, from, to } of changes) {
      pieces.push(decoder.decode(bytes.subarray(after, at)), to);
      after = at + new TextEncoder().encode(from).length;
    }
    pieces.push(decoder.decode(bytes.subarray(after)));
    return pieces.join("");
  }
}
