"""Feature templates for column files: the language, and its compiler to integers.

A template says which cells around a token make a feature. In our notation columns have names, and templates are built from

=================================  =====================================================================================
``w[0]``, ``w``, ``pos[-1]``        the cell of this token, of the token before
``w[-1]|w[0]``                      both together (a conjunction), of any length
``lower(w[0])``                     in lower case
``prefix3(w[0])``, ``suffix2(w)``   the first, last characters; nothing if the cell is shorter than that
``shape(w)``, ``short_shape(w)``    ``McX-9.5`` is ``XxX-d.d``; short: runs of one kind are written once
``match('[A-Z]', w[0])``            a test, with the meaning of Python's `re.match`; also ``search`` and ``fullmatch``. What
                                    could take long is refused (`partwise.text.patterns`)
``__BOS__``, ``__EOS__``            a test: is this the first, the last token of the sentence
``bias``                            always there
=================================  =====================================================================================

Functions can be nested, ``suffix3(lower(w[0]))``. A test that fails, and a cell outside the sentence, give no feature. Template
files of CRF++ are read as they are (``U05:%x[-1,0]/%x[0,0]``, ``B``); there, as in CRF++, cells outside the sentence are
``_B-1``, ``_B+1`` and so on, and templates that differ only in what their ``%x`` point at share their features (a bag of words).
A file holds one template a line, of either kind; lines that start with ``#`` are comments. In a list, the name of a ready-made
set stands for all its templates: ``["chunking", "suffix3(w[0])"]``.

No string is built per token. Columns come as integers (`partwise.text.columns`); functions are applied to the distinct cells
of a column; a template's features are rows of integers in an exact hash table (`partwise.text.vocabulary`).
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise.text.patterns import TooManyWays, check_pattern, matcher
from partwise.text.vocabulary import Program

FARTHEST = 1000  # the largest offset
LONGEST = 200  # the longest prefix or suffix
MOST_CHARACTERS, DEEPEST = 10_000, 100  # of one template: beyond reason, and bounded for the sake of hostile model files

CHUNKING = (  # CRFsuite's tutorial: Okazaki (2007)
    *(f"w[{t}]" for t in range(-2, 3)),
    "w[-1]|w[0]",
    "w[0]|w[1]",
    *(f"pos[{t}]" for t in range(-2, 3)),
    *(f"pos[{t}]|pos[{t + 1}]" for t in range(-2, 2)),
    *(f"pos[{t}]|pos[{t + 1}]|pos[{t + 2}]" for t in range(-2, 1)),
    "__BOS__",
    "__EOS__",
)
PHRASES = (  # and the forms of words: chosen on held-out parts of CoNLL-2000's training data (benchmarks/choose_settings.py)
    *CHUNKING[:-2],
    *(f"short_shape(w[{t}])" for t in range(-1, 2)),
    "prefix3(w[0])",
    *(f"suffix3(w[{t}])" for t in range(-1, 2)),
    "__BOS__",
    "__EOS__",
)
WORDS = (  # in the spirit of Ratnaparkhi (1996), "A maximum entropy model for part-of-speech tagging"
    *(f"w[{t}]" for t in range(-2, 3)),
    "w[-1]|w[0]",
    "w[0]|w[1]",
    "lower(w[0])",
    *(f"prefix{n}(w[0])" for n in range(1, 6)),
    *(f"suffix{n}(w[0])" for n in range(1, 6)),
    "suffix3(w[-1])",
    "suffix3(w[1])",
    "short_shape(w[0])",
    "short_shape(w[-1])|short_shape(w[0])",
    "search('[0-9]', w[0])",
    "search('-', w[0])",
    "__BOS__",
    "__EOS__",
    "__BOS__|short_shape(w[0])",
)
NER = (
    *(f"w[{t}]" for t in range(-2, 3)),
    "w[-1]|w[0]",
    "w[0]|w[1]",
    *(f"lower(w[{t}])" for t in range(-1, 2)),
    *(f"prefix{n}(w[0])" for n in range(1, 6)),
    *(f"suffix{n}(w[0])" for n in range(1, 6)),
    *(f"shape(w[{t}])" for t in range(-1, 2)),
    *(f"short_shape(w[{t}])" for t in range(-2, 3)),
    "short_shape(w[-1])|short_shape(w[0])",
    "short_shape(w[0])|short_shape(w[1])",
    *(f"short_shape(w[{t}])|short_shape(w[{t + 1}])|short_shape(w[{t + 2}])" for t in range(-2, 1)),
    "lower(w[-1])|short_shape(w[0])",
    "short_shape(w[0])|lower(w[1])",
    "__BOS__",
    "__EOS__",
    "__BOS__|short_shape(w[0])",
)
SETS = {"chunking": (CHUNKING, ("w", "pos")), "phrases": (PHRASES, ("w", "pos")), "words": (WORDS, ("w",)), "ner": (NER, ("w",))}

# ---------------------------------------------------------------------------------------------------------------------
# The language
# ---------------------------------------------------------------------------------------------------------------------

TESTS = ("match", "search", "fullmatch")
FUNCTIONS = "lower, prefix<n>, suffix<n>, shape, short_shape, match, search, fullmatch"
NAME = r"[^\W\d][\w.-]*"
START, END = ((-1, (("start", None),)), (-1, (("end", None),)))
POSITIONS = {"__BOS__": START, "__EOS__": END}
Source = tuple[int, tuple[tuple[str, Any], ...]]  #: a column, and the functions applied to its cells, in that order


class Atom(NamedTuple):
    """One cell, or what functions make of it."""

    source: Source
    offset: int

    @property
    def is_test(self) -> bool:
        """Whether there is only one value it can have."""
        return bool(self.source[1]) and self.source[1][-1][0] in (*TESTS, "start", "end")


class Template(NamedTuple):
    """What a line of a template file says."""

    text: str  #: in our notation: complete and without blanks; in that of CRF++: as it is
    atoms: tuple[Atom, ...]
    literals: tuple[str, ...] | None  #: of CRF++: the text between the atoms

    @property
    def group(self) -> tuple[str, ...]:
        """Templates of one group have the same features: in CRF++ those that differ only in what their %x point at."""
        return (self.text,) if self.literals is None else ("%x", *self.literals)

    def name(self, values: Sequence[str]) -> str:
        """What its feature with these values is called."""
        if self.literals is not None:
            return "".join(itertools.chain.from_iterable(itertools.zip_longest(self.literals, values, fillvalue="")))
        shown = [value for atom, value in zip(self.atoms, values, strict=True) if not atom.is_test]
        return self.text + "=" + "|".join(shown) if shown else self.text


def parse_template(text: str, columns: Sequence[str], place: str = "") -> Template | None:
    """The template that `text` describes; None for CRF++'s ``B``, which stands for transitions between labels.

    Raises
    ------
    ValueError
        Saying `place`, what was expected, and where in the text.
    """
    text = text.strip()
    place = place or f"template {text!r}"
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"{place}: the template is longer than {MOST_CHARACTERS} characters.")
    if re.match(r"[UB]\w*[:%]|[UB]\d*$", text) or re.match(r"[^('\"]*%x\[", text):
        return _parse_crfpp(text, place)
    return _Parser(text, columns, place).template()


def _parse_crfpp(text: str, place: str) -> Template | None:
    pieces = re.split(r"%x\[\s*([-+]?\d+)\s*,\s*(\d+)\s*\]", text)
    literals, rows, numbers = pieces[0::3], pieces[1::3], pieces[2::3]
    if any("%" in literal for literal in literals):
        raise ValueError(
            f"{place}: cannot read {text!r}: a % must begin %x[row,column]. (For regular expressions write match('...', w[0]).)"
        )
    if text[0] == "B":
        if rows:
            raise ValueError(
                f"{place}: {text!r} asks for features of two labels and a cell, which are not supported: transitions have one "
                "weight per pair of labels. Write B alone for those, and U... for features of a cell."
            )
        return None
    if text[0] != "U":
        raise ValueError(f"{place}: cannot read {text!r}: a template with %x must begin with U (or be B alone).")
    atoms = tuple(Atom((int(c), ()), _offset(t, place)) for t, c in zip(rows, numbers, strict=True))
    return Template(text, atoms, tuple(literals))


def _offset(text: str, place: str) -> int:
    if len(text) > 9 or abs(int(text)) > FARTHEST:
        raise ValueError(f"{place}: the offset {text[:20]} is too far; at most {FARTHEST} tokens.")
    return int(text)


class _Parser:
    """Recursive descent over one template in our notation."""

    def __init__(self, text: str, columns: Sequence[str], place: str):
        self.text, self.columns, self.place, self.at, self.depth = text, columns, place, 0, 0

    def refuse(self, expected: str) -> ValueError:
        rest = self.text[self.at :]
        got = f"{rest[:20]!r} at character {self.at + 1}" if rest else "its end"
        return ValueError(f"{self.place}: cannot read {self.text!r}: expected {expected}, got {got}.")

    def take(self, pattern: str) -> str:
        """The text matching `pattern` here, or ''; blanks after it are passed over."""
        match = re.compile(f"({pattern})[ \t]*").match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[1]

    def need(self, pattern: str, expected: str) -> str:
        found = self.take(pattern)
        if not found:
            raise self.refuse(expected)
        return found

    def template(self) -> Template:
        if self.text == "bias":
            return Template("bias", (), None)
        parts = [self.atom()]
        while self.at < len(self.text):
            self.need(r"\|", "'|' or the end")
            parts.append(self.atom())
        return Template("|".join(text for text, _ in parts), tuple(atom for _, atom in parts), None)

    def atom(self) -> tuple[str, Atom]:
        name = self.need(NAME, "a column or a function")
        if self.take(r"\("):
            return self.function(name)
        if name in POSITIONS:
            return name, Atom(POSITIONS[name], 0)
        if name not in self.columns:
            raise ValueError(
                f"{self.place}: the template {self.text!r} refers to a column {name!r}, which is not there. The columns are: "
                f"{', '.join(self.columns) or 'none'}. Functions are: {FUNCTIONS}."
            )
        offset = 0
        if self.take(r"\["):
            offset = _offset(self.need(r"[-+]?\d+", "an offset such as -1"), self.place)
            self.need(r"\]", "']'")
        return f"{name}[{offset}]", Atom((list(self.columns).index(name), ()), offset)

    def function(self, name: str) -> tuple[str, Atom]:
        argument: Any = None
        shown = ""
        affix = re.fullmatch(r"(prefix|suffix)(\d{1,9})", name)
        if affix:
            argument = int(affix[2])
            if not 1 <= argument <= LONGEST:
                raise ValueError(f"{self.place}: {name} must have a length in the range [1, {LONGEST}].")
        elif name in TESTS:
            shown = self.need(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "a regular expression in quotes")
            argument = shown[1:-1]
            try:
                check_pattern(argument)
            except TooManyWays as error:
                raise ValueError(f"{self.place}: the regular expression {argument!r} is wrong: {error}.") from None
            self.need(",", "','")
            shown += ","
        elif name not in ("lower", "shape", "short_shape"):
            raise ValueError(
                f"{self.place}: cannot read {self.text!r}: there is no function {name!r}. Functions are: {FUNCTIONS}."
            )
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.refuse(f"at most {DEEPEST} functions")
        text, atom = self.atom()
        if atom.is_test:
            raise ValueError(f"{self.place}: {name} cannot be applied to {text}, which is a test.")
        self.need(r"\)", "')'")
        (column, functions), offset = atom
        return f"{name}({shown}{text})", Atom((column, (*functions, (affix[1] if affix else name, argument))), offset)


def read_templates(
    templates: str | os.PathLike[str] | Iterable[str], columns: Sequence[str] | None
) -> tuple[list[Template], list[str], bool]:
    """Templates, names of columns, and whether there are transitions (in CRF++: only with a ``B``); from a set, file or list."""
    names = list(columns) if columns is not None else ["w", "pos"]
    if isinstance(templates, str) and templates in SETS:
        lines, standard = SETS[templates]
        names = list(columns) if columns is not None else list(standard)
        placed = [(f"the set {templates!r}", line) for line in lines]
    elif isinstance(templates, str | os.PathLike):
        path = os.fspath(templates)
        if not os.path.isfile(path):
            raise FileNotFoundError(f"{path!r} is neither a file of templates nor a ready-made set: {', '.join(sorted(SETS))}.")
        with open(path, encoding="utf-8-sig") as file:
            try:
                placed = [(f"{path}, line {k}", line.strip()) for k, line in enumerate(file, 1)]
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}: not valid utf-8 text ({error.reason}).") from None
    else:
        placed = []
        for k, line in enumerate(templates, 1):
            if not isinstance(line, str):
                raise TypeError(f"template {k}: must be a string. Got {line!r} ({type(line).__name__}) instead.")
            placed += [(f"template {k}", one) for one in (SETS[line][0] if line in SETS else [line])]
    if len(set(names)) != len(names) or not all(isinstance(name, str) and re.fullmatch(NAME, name) for name in names):
        raise ValueError(
            f"The 'columns' parameter must be a list of distinct names, such as ['w', 'pos']. Got {names!r} instead."
        )
    placed = [(place, line) for place, line in placed if line.strip() and not line.lstrip().startswith("#")]
    parsed = [parse_template(line, names, place) for place, line in placed]
    found = list(dict.fromkeys(template for template in parsed if template is not None))  # twice the same is once
    if not found:
        raise ValueError(f"There are no templates in {templates!r}.")
    return found, names, None in parsed or any(template.literals is None for template in found)


def compile_templates(templates: Sequence[Template]) -> tuple[Program, list[Source], list[Template]]:
    """The templates as a `Program`, the rows of values it looks at, and a template of each group."""
    sources = list(dict.fromkeys(atom.source for template in templates for atom in template.atoms))
    groups = {template.group: template for template in reversed(templates)}
    groups = {template.group: groups[template.group] for template in templates}  # in the order of their first templates
    numbers, rows = {group: k for k, group in enumerate(groups)}, {source: k for k, source in enumerate(sources)}
    atoms = [atom for template in templates for atom in template.atoms]
    program = Program(
        np.array([numbers[template.group] for template in templates], np.int32),
        np.cumsum([0, *(len(template.atoms) for template in templates)], dtype=np.int64),
        np.array([rows[atom.source] for atom in atoms], np.int64),
        np.array([atom.offset for atom in atoms], np.int64),
        np.array([template.literals is not None for template in templates], np.uint8),
        np.array([len(template.atoms) for template in groups.values()], np.int64),
        len(groups) < len(templates),
    )
    return program, sources, list(groups.values())


# ---------------------------------------------------------------------------------------------------------------------
# Functions of cells, applied to the distinct cells of a column
# ---------------------------------------------------------------------------------------------------------------------


class _Shapes(dict):
    """Kinds of characters, remembered; for `str.translate`."""

    def __missing__(self, code):
        c = chr(code)
        self[code] = kind = "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c
        return kind


_SHAPES, _RUN = _Shapes(), re.compile(r"(.)\1+", re.DOTALL)
Cells = list[str | None]


@functools.lru_cache(maxsize=1 << 14)  # many words, few shapes
def _short(shape: str) -> str:
    return _RUN.sub(r"\1", shape)


def _each(function: Callable[[str], str | None]) -> Callable[[Cells], Cells]:
    return lambda cells: [None if cell is None else function(cell) for cell in cells]


def make_function(name: str, argument: Any) -> Callable[[Cells], Cells]:
    """The function from cells to values that a template names; None is no value."""
    if name == "lower":
        return _each(str.lower)
    if name == "prefix":
        return lambda cells: [cell[:argument] if cell is not None and len(cell) >= argument else None for cell in cells]
    if name == "suffix":
        return lambda cells: [cell[-argument:] if cell is not None and len(cell) >= argument else None for cell in cells]
    if name == "shape":
        return _each(lambda cell: cell.translate(_SHAPES))
    if name == "short_shape":
        return _each(lambda cell: _short(cell.translate(_SHAPES)))
    test = matcher(argument, name)
    return _each(lambda cell: "" if test(cell) else None)
