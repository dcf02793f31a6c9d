"""Pages of suspects made up for tests, without a model."""

from partwise.cli.review_page import made_page
from partwise.files.text_edits import EditableText
from partwise.tasks.common.review import DoubtedWord, Passage, Review, ReviewItem


def column_text(sentences, separator="\t"):
    """A column file of words and labels."""
    return "\n\n".join("\n".join(separator.join(token) for token in sentence) for sentence in sentences) + "\n"


def column_review(sentences, doubts, whole=True, separator="\t"):
    """The review of that file; doubts are (sentence, word, believed)."""
    passages, line, at = [], 1, 0
    for sentence in sentences:
        begins, lines = [], []
        for word, label in sentence:
            begins.append(at + len((word + separator).encode()))
            lines.append(line)
            at += len((word + separator + label).encode()) + 1
            line += 1
        at, line = at + 1, line + 1
        passages.append(Passage([word for word, _ in sentence], [label for _, label in sentence], begins, lines))
    items = []
    for k, (sentence, word, believed) in enumerate(doubts):
        why = [(f"w[0]={sentences[sentence][word][0]}", 1.5), ("suffix", -0.25)]
        wrong = 0.99 - k * 1e-6
        items.append(ReviewItem(sentence, wrong, [DoubtedWord(word, believed, wrong, (0.1, 0.8), why)]))
    labels = sorted({label for sentence in sentences for _, label in sentence})
    reading = {"separator": separator, "comment": None, "encoding": "utf-8", "label_column": 1, "unknown_label": None}
    return Review(passages, items, labels, whole, r"[^\t\r\n]+", "A label must fit in its column.", reading)


def write_page(folder, sentences, doubts, whole=True):
    """A file and its page; where they are."""
    file, page = folder / "corpus.txt", folder / "page.html"
    file.write_bytes(column_text(sentences).encode())
    source = EditableText.read(str(file))
    review = column_review(sentences, doubts, whole)
    page.write_bytes(made_page(review.packed("tag", source, f"{len(doubts)} of {len(sentences)} sentences"), source))
    return file, page


def write_text_page(folder, shape, rows, believed, above=(), task="fold", names=()):
    """A file of rows of cells with tabs between them, edited as text, and its page; `believed` has other cells for some rows.

    `names` of columns are a line above them.
    """
    file, page = folder / "corpus.txt", folder / "page.html"
    head = "\t".join(names) + "\n" if names else ""
    file.write_text(head + "".join("\t".join(row) + "\n" for row in rows))
    source, passages, items, at = EditableText.read(str(file)), [], [], len(head)
    for k, row in enumerate(rows):
        begins = [at + len("\t".join([*row[:j], ""])) for j in range(len(row))]
        at = begins[-1] + len(row[-1]) + 1
        words, line = ["first", "second", "core"][: len(row)], k + 1 + bool(names)
        passages.append(Passage(words, row, begins, [line] * len(row), above=list(above[k : k + 1])))
        if k in believed:
            doubts = [DoubtedWord(j, cell, 0.9) for j, cell in enumerate(believed[k])]
            items.append(ReviewItem(k, 0.9, doubts))
    review = Review(passages, items, [], True, ".*", "", {"encoding": "utf-8"}, shape=shape)
    page.write_bytes(made_page(review.packed(task, source, f"{len(items)} of {len(rows)}"), source))
    return file, page
