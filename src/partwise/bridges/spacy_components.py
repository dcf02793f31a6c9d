"""Components for spaCy pipelines: ``partwise_ner``, ``partwise_tagger``, ``partwise_parser``.

    nlp = spacy.blank("en")
    nlp.add_pipe("partwise_ner", config={"loss": "crf"})
    nlp.initialize(lambda: examples)

A component learns from all examples at once, when the pipeline is initialised; with ``spacy train`` this is the first thing that
happens, and the steps that follow change nothing (``max_steps = 1`` is enough). It is saved and loaded with its pipeline.
Entities that are not annotated (``-``) are treated as unknown, not as absent. With ``marginals = true`` and a loss that has
probabilities, ``doc._.partwise_marginals[NAME]`` has them: an array (tokens, labels); for the parser a list of arrays, one for
each sentence.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import spacy  # noqa: TID253 - this module is loaded by spaCy
from spacy.language import Language  # noqa: TID253
from spacy.scorer import Scorer, get_ner_prf  # noqa: TID253
from spacy.tokens import Doc, Span  # noqa: TID253
from spacy.training import Example  # noqa: TID253

from partwise.losses.records import get_loss

TESTED = ("3.7", "3.8")  #: versions of spaCy that the tests ran with
FILE = "partwise.model"

if not Doc.has_extension("partwise_marginals"):
    Doc.set_extension("partwise_marginals", default=None)
if ".".join(spacy.__version__.split(".")[:2]) not in TESTED:
    warnings.warn(f"partwise was tested with spaCy {' and '.join(TESTED)}; this is {spacy.__version__}.", stacklevel=2)


class Component:
    """What the three share: learn from examples, annotate documents, be saved and loaded."""

    estimator = ""

    def __init__(self, name: str, settings: dict[str, Any], marginals: bool = False):
        self.name, self.settings, self.marginals = name, settings, marginals
        self.model_: Any = None

    def new_estimator(self) -> Any:
        """Untrained; values that were not set are those of the class."""
        import partwise

        return getattr(partwise, self.estimator)(**{key: value for key, value in self.settings.items() if value is not None})

    @property
    def labels(self) -> tuple[str, ...]:
        """What may be predicted, for ``nlp.pipe_labels``; nothing before training."""
        return () if self.model_ is None else tuple(map(str, self.model_.classes_))

    # -- learning

    def training_data(self, examples: Iterable[Example]) -> tuple[list[Any], list[Any]]:
        """Sentences and their annotation."""
        raise NotImplementedError

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Train; called by ``nlp.initialize`` and ``spacy train``."""
        X, y = self.training_data(get_examples())
        if not X:
            raise ValueError(f"{self.name}: there is no example with the annotation that it learns from.")
        loss = self.settings["loss"]
        if self.marginals and not get_loss(loss).is_smooth:
            raise ValueError(f"{self.name}: marginals need a loss with probabilities, 'crf' or 'softmax_margin'. Got {loss!r}.")
        self.model_ = self.new_estimator().fit(X, y)

    def update(self, examples: Iterable[Example], *, drop: float = 0.0, sgd: Any = None, losses: Any = None) -> dict[str, float]:
        """Nothing is left to do: `initialize` has seen all examples."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        return losses

    # -- annotating

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Documents in batches."""
        if self.model_ is None:
            raise ValueError(f"{self.name} is not trained: call nlp.initialize with examples, or load a pipeline.")
        batch: list[Doc] = []
        for doc in stream:
            batch.append(doc)
            if len(batch) == batch_size:
                yield from self.annotate(batch)
                batch = []
        yield from self.annotate(batch)

    def annotate(self, docs: list[Doc]) -> list[Doc]:
        """Set what was found."""
        raise NotImplementedError

    def keep_marginals(self, docs: list[Doc], found: list[Any]) -> None:
        """For ``doc._.partwise_marginals``."""
        for doc, one in zip(docs, found, strict=True):
            doc._.partwise_marginals = {**(doc._.partwise_marginals or {}), self.name: one}

    # -- files

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The model file; nothing, if it is not trained."""
        if self.model_ is None:
            return b""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder)
            return (Path(folder) / FILE).read_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Component:
        """The reverse."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / FILE).write_bytes(data)
            return self.from_disk(folder)

    def to_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> None:
        """A folder with the model file; an empty one, if it is not trained."""
        Path(path).mkdir(parents=True, exist_ok=True)
        if self.model_ is None:
            (Path(path) / FILE).write_bytes(b"")
        else:
            self.model_.save(Path(path) / FILE)

    def from_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> Component:
        """The reverse."""
        import partwise

        file = Path(path) / FILE
        self.model_ = partwise.load(file) if file.stat().st_size else None
        return self


def words_of(doc: Doc) -> list[tuple[str]]:
    """Tokens as columns; a token that is blank keeps its place."""
    return [(token.text if token.text.strip() else "_",) for token in doc]


class SequenceComponent(Component):
    """Labels of tokens."""

    estimator = "SequenceLabeler"

    def annotate(self, docs: list[Doc]) -> list[Doc]:
        X = [words_of(doc) for doc in docs]
        for doc, labels in zip(docs, self.model_.predict(X), strict=True):
            self.set(doc, labels)
        if self.marginals:
            self.keep_marginals(docs, list(self.model_.predict_marginals(X)))
        return docs

    def set(self, doc: Doc, labels: list[Any]) -> None:
        """Write the labels into the document."""
        raise NotImplementedError


class NamedEntities(SequenceComponent):
    """``partwise_ner``: entities from BILUO labels, those of a document that are set already are replaced."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Types of entities; ``model_.classes_`` has the labels of tokens, which are the columns of marginals."""
        return tuple(sorted({kind for _, dash, kind in (label.partition("-") for label in super().labels) if dash}))

    def training_data(self, examples: Iterable[Example]) -> tuple[list[Any], list[Any]]:
        X, y = [], []
        for example in examples:
            labels = [None if one in (None, "-") else one for one in example.get_aligned_ner()]
            if any(one is not None for one in labels):
                X.append(words_of(example.predicted))
                y.append(labels)
        return X, y

    def set(self, doc: Doc, labels: list[Any]) -> None:
        spans, first = [], 0
        for k, label in enumerate(labels):
            prefix, _, kind = label.partition("-")
            if prefix in ("B", "U"):
                first = k
            if prefix in ("L", "U"):
                spans.append(Span(doc, first, k + 1, label=kind))
        doc.set_ents(spans)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Precision, recall and F1 of entities, as spaCy counts them."""
        return get_ner_prf(examples)


class Tags(SequenceComponent):
    """``partwise_tagger``: sets ``token.tag_``."""

    def training_data(self, examples: Iterable[Example]) -> tuple[list[Any], list[Any]]:
        X, y = [], []
        for example in examples:
            labels = [one or None for one in example.get_aligned("TAG", as_string=True)]
            if any(labels):
                X.append(words_of(example.predicted))
                y.append(labels)
        return X, y

    def set(self, doc: Doc, labels: list[Any]) -> None:
        for token, label in zip(doc, labels, strict=True):
            token.tag_ = str(label)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Accuracy of tags."""
        return Scorer.score_token_attr(examples, "tag")


def name_of(token: Any, attribute: str) -> str:
    """A relation by its name, which is a number in `token.dep`: scores of each relation are told by it."""
    return token.vocab.strings[getattr(token, attribute)]


class Dependencies(Component):
    """``partwise_parser``: sets heads and relations, sentence by sentence; without sentence boundaries a document is one tree."""

    estimator = "DependencyParser"

    @staticmethod
    def sentences(doc: Doc) -> list[tuple[int, int]]:
        """Where sentences begin and end."""
        if len(doc) == 0:
            return []
        if not doc.has_annotation("SENT_START"):
            return [(0, len(doc))]
        return [(sent.start, sent.end) for sent in doc.sents]

    @staticmethod
    def cells(doc: Doc, start: int, end: int) -> list[tuple[str, str]]:
        """Words and tags."""
        return [(token.text if token.text.strip() else "_", token.tag_ or "_") for token in doc[start:end]]

    def training_data(self, examples: Iterable[Example]) -> tuple[list[Any], list[Any]]:
        X, y = [], []
        for example in examples:
            doc = example.reference  # its words, tags and sentences
            if not doc.has_annotation("DEP"):
                continue
            for start, end in self.sentences(doc):
                heads = [0 if token.head.i == token.i else token.head.i - start + 1 for token in doc[start:end]]
                if all(0 <= head <= end - start for head in heads):
                    X.append(self.cells(doc, start, end))
                    y.append((heads, [token.dep_ or "dep" for token in doc[start:end]]))
        return X, y

    def annotate(self, docs: list[Doc]) -> list[Doc]:
        places = [(doc, *place) for doc in docs for place in self.sentences(doc)]
        X = [self.cells(*place) for place in places]
        trees = self.model_.predict(X) if X else []
        own: dict[int, list[tuple[int, Any]]] = {id(doc): [] for doc in docs}
        for (doc, start, _), tree in zip(places, trees, strict=True):
            own[id(doc)].append((start, tree))
        for doc in docs:
            heads, relations = list(range(len(doc))), [""] * len(doc)
            for start, tree in own[id(doc)]:
                for k, head in enumerate(tree.heads):
                    heads[start + k] = start + (head - 1 if head else k)
                    relations[start + k] = tree.relations[k] if tree.relations is not None else "dep"
            if len(doc):
                self.set_tree(doc, heads, relations)
        if self.marginals:
            found: dict[int, list[Any]] = {id(doc): [] for doc in docs}
            for (doc, *_), one in zip(places, self.model_.predict_marginals(X) if X else [], strict=True):
                found[id(doc)].append(one)
            self.keep_marginals(docs, [found[id(doc)] for doc in docs])
        return docs

    @staticmethod
    def set_tree(doc: Doc, heads: list[int], relations: list[str]) -> None:
        """All heads at once: one by one, a tree that is half written could be a circle."""
        import numpy as np

        distances = (np.array(heads, np.int64) - np.arange(len(heads))).astype(np.uint64)  # negative ones wrap, as spaCy has them
        numbers = np.array([doc.vocab.strings.add(relation) for relation in relations], np.uint64)  # hashes: up to 64 bits
        rows: Any = np.column_stack([distances, numbers])
        doc.from_array(["HEAD", "DEP"], rows)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Attachment scores, punctuation left out, as spaCy counts them."""
        return Scorer.score_deps(examples, "dep", getter=name_of, ignore_labels=("p", "punct"))


SHARED = {"loss": "hinge", "C": None, "solver": "auto", "max_epochs": None, "l1_ratio": 0.0, "marginals": False}


def of_sequences(cls: type[SequenceComponent], nlp: Language, name: str, marginals: bool, settings: dict[str, Any]) -> Component:
    """A component over words alone."""
    return cls(name, {**settings, "columns": ["w"]}, marginals)


@Language.factory(
    "partwise_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_config={**SHARED, "templates": "ner"},
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_ner(
    nlp: Language, name: str, loss: str, C: float | None, solver: str, max_epochs: int | None, l1_ratio: float, marginals: bool,
    templates: str | list[str],
) -> Component:  # fmt: skip
    """Named entities by a `SequenceLabeler`."""
    settings = {"loss": loss, "C": C, "solver": solver, "max_epochs": max_epochs, "l1_ratio": l1_ratio, "templates": templates}
    return of_sequences(NamedEntities, nlp, name, marginals, {**settings, "constraints": "bilou"})


@Language.factory(
    "partwise_tagger",
    assigns=["token.tag"],
    default_config={**SHARED, "templates": "words"},
    default_score_weights={"tag_acc": 1.0},
)
def make_tagger(
    nlp: Language, name: str, loss: str, C: float | None, solver: str, max_epochs: int | None, l1_ratio: float, marginals: bool,
    templates: str | list[str],
) -> Component:  # fmt: skip
    """Tags by a `SequenceLabeler`."""
    settings = {"loss": loss, "C": C, "solver": solver, "max_epochs": max_epochs, "l1_ratio": l1_ratio, "templates": templates}
    return of_sequences(Tags, nlp, name, marginals, settings)


@Language.factory(
    "partwise_parser",
    assigns=["token.dep", "token.head", "doc.sents"],
    default_config={**SHARED, "hash_bits": 22, "projective": False},
    default_score_weights={"dep_uas": 0.5, "dep_las": 0.5, "dep_las_per_type": None},
)
def make_parser(
    nlp: Language, name: str, loss: str, C: float | None, solver: str, max_epochs: int | None, l1_ratio: float, marginals: bool,
    hash_bits: int, projective: bool,
) -> Component:  # fmt: skip
    """Trees by a `DependencyParser`, from words and the tags that are set."""
    settings = {"loss": loss, "C": C, "solver": solver, "max_epochs": max_epochs, "l1_ratio": l1_ratio}
    more = {"hash_bits": hash_bits, "projective": projective, "columns": ["form", "upos"]}
    return Dependencies(name, {**settings, **more}, marginals)
