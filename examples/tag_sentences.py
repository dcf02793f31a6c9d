"""Label sentences: attributes as strings, constraints, the k best labellings, probabilities, and a model file.

python examples/tag_sentences.py
"""

import tempfile
from pathlib import Path

from partwise import SequenceLabeler, load
from partwise.datasets import make_tagged_sequences
from partwise.metrics import span_scores


def main() -> None:
    X, y = make_tagged_sequences(300, seed=1)
    X_test, y_test = make_tagged_sequences(100, seed=2)
    print("a token:", X[0][0], "->", y[0][0])

    labeler = SequenceLabeler(loss="crf", C=1.0, constraints="iob2", random_state=0).fit(X, y)
    scores = span_scores(y_test, labeler.predict(X_test))
    print(f"held-out spans: precision {scores.precision:.3f}, recall {scores.recall:.3f}, F1 {scores.f1:.3f}")

    for labels, value in labeler.predict_kbest(X_test[:1], k=3)[0]:
        print(f"{value:8.2f}  {' '.join(labels)}")
    print("P(labels of the first token):", labeler.predict_marginals(X_test[:1])[0][0].round(3))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tagger.partwise"
        labeler.save(path)
        assert load(path).predict(X_test) == labeler.predict(X_test)


if __name__ == "__main__":
    main()
