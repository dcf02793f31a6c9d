// Trees in brackets: the tree as it is now beside the one that is believed, and a field to edit it as text.
//
// A passage has one word, the sentence, and one cell, the text of its tree: "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))".

SHAPES.brackets = {
  text: (passage, text, other) => differing(text, other).map((one) => `(${one.label} ${wordsIn(one).join(" ")})`).join(" ") || "no other brackets",
  pair(given, believed) {
    const [before, after] = [differing(given, believed), differing(believed, given)].map((some) => some.map((one) => one.label));
    const few = (labels) => (labels.length > 3 ? `${labels.length} brackets` : labels.sort().join(" ") || "none");
    return `${few(before)} → ${few(after)}`;
  },
  view: bracketsView,
  drawn: () => {},
  editor: bracketsEditor,
  refusal: (item, labels) => notThisTree(state.passageOf(item), labels[0]),
};

/** A tree {label, children, begin, end}, words being strings; throws what is wrong. */
function readTree(text) {
  const stack = [];
  let [tree, n] = [null, 0];
  for (const token of text.match(/[()]|[^\s()]+/g) ?? []) {
    if (tree) throw new Error(`“${token}” is after the last bracket.`);
    if (token === "(") stack.push({ label: null, children: [], begin: n, end: n });
    else if (!stack.length) throw new Error(`“${token}” is outside all brackets.`);
    else if (token === ")") {
      const made = stack.pop();
      if (!made.children.length) throw new Error(`There is nothing in the bracket (${made.label ?? ""}).`);
      if (made.label === null) {
        if (stack.length || made.children.length > 1) throw new Error("A bracket within a tree, or above several trees, must have a label.");
        made.label = "";
      }
      made.end = n;
      if (stack.length) stack.at(-1).children.push(made);
      else tree = made;
    } else if (stack.at(-1).label === null && !stack.at(-1).children.length) stack.at(-1).label = token;
    else {
      stack.at(-1).children.push(token);
      n += 1;
    }
  }
  if (stack.length) throw new Error(stack.length > 1 ? `${stack.length} brackets are not closed.` : "A bracket is not closed.");
  if (!tree) throw new Error("There is no tree: expected brackets.");
  return tree;
}

const wordsIn = (tree) => tree.children.flatMap((child) => (typeof child === "string" ? [child] : wordsIn(child)));
const isTag = (tree) => tree.children.length === 1 && typeof tree.children[0] === "string";

/** All brackets but tags, from the root down; an outer one without a label is none. */
function bracketsIn(tree) {
  if (isTag(tree)) return [];
  return [...(tree.label ? [tree] : []), ...tree.children.filter((child) => typeof child !== "string").flatMap(bracketsIn)];
}

const keyOf = (tree) => `${tree.label} ${tree.begin} ${tree.end}`;

/** The brackets of one tree that another does not have. */
function onlyIn(tree, other) {
  const left = new Map();
  for (const one of bracketsIn(other)) left.set(keyOf(one), (left.get(keyOf(one)) ?? 0) + 1);
  return bracketsIn(tree).filter((one) => {
    const n = left.get(keyOf(one)) ?? 0;
    left.set(keyOf(one), n - 1);
    return n <= 0;
  });
}

const differing = (text, other) => onlyIn(readTree(text), readTree(other));

/** Why a text cannot stand in place of the tree; nothing, if it can: balanced, and the same words. */
function notThisTree(passage, text) {
  const words = wordsIn(readTree(data.labels[passage.given[0]]));
  try {
    const found = wordsIn(readTree(text));
    const k = words.findIndex((word, place) => word !== found[place]);
    if (k >= 0) return `That is another sentence: word ${k + 1} is “${words[k]}”, not “${found[k] ?? "nothing"}”.`;
    if (found.length > words.length) return `That is another sentence: “${found[words.length]}” is one word too many.`;
    return "";
  } catch (error) {
    return `That is no tree. ${error.message}`;
  }
}

/** A tree as lines, a bracket each, those that the other tree does not have with a mark before them. */
function treeLines(text, other, mark) {
  const tree = readTree(text);
  const marked = new Set(onlyIn(tree, readTree(other)));
  const lines = [];
  const visit = (node, depth) => {
    const flat = node.children.every((child) => typeof child === "string" || isTag(child));
    const own = [make("span", { class: "mark" }, marked.has(node) ? mark : " "), make("bdi", { class: isTag(node) ? "tag" : "name" }, node.label)];
    if (flat) own.push(" ", make("bdi", {}, wordsIn(node).join(" ")));
    const line = make("li", { class: marked.has(node) ? "differs" : "" }, ...own);
    line.style.paddingInlineStart = `${Math.min(depth, 20) * 0.9}rem`;
    lines.push(line);
    if (flat) return;
    for (const child of node.children) {
      if (typeof child !== "string") visit(child, depth + 1);
      else visit({ label: "", children: [child], begin: 0, end: 0 }, depth + 1);
    }
  };
  if (tree.label === "" && typeof tree.children[0] !== "string") visit(tree.children[0], 0);
  else visit(tree, 0);
  return make("ol", { class: "brackets" }, ...lines);
}

function bracketsView(item, passage, labels, doubted) {
  const given = data.labels[passage.given[0]];
  const believed = doubted.has(0) ? data.labels[doubted.get(0).believed] : given;
  const changed = labels[0] !== given;
  const column = (title, text, other, mark, kind) => make("div", { class: `column ${kind}` }, make("h3", {}, title), treeLines(text, other, mark));
  const way = direction(passage.words);
  return make(
    "div",
    { class: "passage trees", dir: way },
    make("p", { class: "words" }, make("bdi", {}, passage.words[0])),
    make(
      "div",
      { class: "columns" },
      changed ? column("as decided", labels[0], given, "+", "now") : column("given", given, believed, "−", "given"),
      changed ? column("was given", given, labels[0], "−", "given") : column("believed", believed, given, "+", "believed"),
    ),
  );
}

function bracketsEditor(item, passage, labels, doubted) {
  const given = data.labels[passage.given[0]];
  const typed = make("textarea", { id: "typed", class: "first", "aria-label": "the tree in brackets", spellcheck: "false", autocomplete: "off", rows: 8 });
  typed.value = labels[0];
  const set = (text) => {
    const wrong = notThisTree(passage, text);
    if (wrong) {
      say(wrong);
      return;
    }
    const same = text.replaceAll("\r\n", "\n") === labels[0].replaceAll("\r\n", "\n"); // a field has no other ends of lines
    kept(state.edit(item, 0, same ? labels[0] : given.includes("\r\n") ? text.replace(/\r?\n/g, "\r\n") : text), "The tree is set.");
    stopEditing();
    show();
  };
  typed.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) set(typed.value);
  });
  const doubt = doubted.get(0);
  return make(
    "div",
    { class: "editor" },
    typed,
    make("button", { type: "button", onclick: () => set(typed.value) }, "Set ", make("kbd", {}, "Ctrl Enter")),
    doubt ? make("button", { type: "button", onclick: () => set(data.labels[doubt.believed]) }, "Believed") : "",
    make("button", { type: "button", onclick: () => set(given) }, "Given"),
    make("button", { type: "button", onclick: stopEditing }, "Done ", make("kbd", {}, "Esc")),
  );
}
