"""Small treebanks: as text, and as sentences in Python."""

from __future__ import annotations

import numpy as np

from partwise.tasks.dependency.files import read_treebank

TEXT = """# sent_id = 1
# text = They don't buy books.
1\tThey\tthey\tPRON\tPRP\tCase=Nom\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tbuy\tbuy\tVERB\tVB\t_\t0\troot\t_\t_
4.1\tsold\tsell\tVERB\t_\t_\t_\t_\t4:conj\t_
5\tbooks\tbook\tNOUN\tNNS\tNumber=Plur\t4\tobj\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_
"""
NOUNS, VERBS = ("dogs", "cats", "we", "birds", "men"), ("eat", "chase", "read", "see")


def treebank(text=TEXT):
    return read_treebank(text.encode())


def word(number, form, head, relation="dep"):
    return "\t".join([str(number), form, form, "X", "X", "_", str(head), relation, "_", "_"])


def sentences(n=25, seed=0):
    """Subject, verb, object, sometimes a full stop: the verb is the root."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = [(str(rng.choice(NOUNS)), "N"), (str(rng.choice(VERBS)), "V"), (str(rng.choice(NOUNS)), "N")]
        heads, relations = [2, 0, 2], ["nsubj", "root", "obj"]
        if rng.random() < 0.5:
            words, heads, relations = [*words, (".", ".")], [*heads, 2], [*relations, "punct"]
        X.append([{"form": form, "upos": tag} for form, tag in words])
        y.append((heads, relations))
    return X, y


def as_conllu(X, y):
    lines = []
    for words, (heads, relations) in zip(X, y, strict=True):
        for k, (word, head, relation) in enumerate(zip(words, heads, relations, strict=True), 1):
            lines.append(f"{k}\t{word['form']}\t_\t{word['upos']}\t_\t_\t{head}\t{relation}\t_\t_")
        lines.append("")
    return "\n".join(lines) + "\n"
