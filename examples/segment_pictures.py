"""Segment noisy pictures: a model of pixels with their neighbours beside one that looks at each pixel alone.

python examples/segment_pictures.py [picture.png]
"""

import sys
import time

import numpy as np

from partwise import Classifier, GraphLabeler
from partwise.datasets import make_pictures
from partwise.metrics import node_scores


def main(
    path=None, n_train: int = 40, n_test: int = 40, size: tuple[int, int] = (20, 20), noise: float = 0.35, epochs: int = 20
) -> dict[str, float]:
    X, y = make_pictures(n_train, seed=1, size=size, noise=noise)
    X_test, y_test = make_pictures(n_test, seed=2, size=size, noise=noise)

    clock = time.process_time()
    alone = Classifier("crf", random_state=0).fit(X.reshape(-1, 3), y.reshape(-1))
    answers = {"each pixel alone": alone.predict(X_test.reshape(-1, 3)).reshape(y_test.shape)}
    seconds = {"each pixel alone": time.process_time() - clock}
    models = {
        "4 neighbours": GraphLabeler(max_epochs=epochs, random_state=0),
        "4 neighbours, potts": GraphLabeler(pairwise="potts", max_epochs=epochs, random_state=0),
    }
    for name, model in models.items():
        clock = time.process_time()
        model.fit(X, y)
        answers[name] = np.stack(model.predict(X_test))
        seconds[name] = time.process_time() - clock

    print(f"{'':22}{'right pixels':>14}{'mean IoU':>12}{'CPU s':>8}")
    found = {}
    for name, labels in answers.items():
        scores = node_scores(list(y_test), list(labels))
        found[name] = scores.accuracy
        print(f"{name:22}{100 * scores.accuracy:12.2f} %{100 * scores.mean_iou:10.2f} %{seconds[name]:8.1f}")
    certificate = models["4 neighbours"].certify(X_test)
    print(f"answers proven to be the best of all labellings: {certificate.proven.sum()} of {n_test}")
    if path is not None:
        draw(path, X_test, [answers["each pixel alone"], answers["4 neighbours"], y_test])
    return found


def draw(path, X, answers, rows: int = 5) -> None:
    """A row for each picture: what is given, each pixel alone, with neighbours, the truth."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print('no picture: pip install "partwise[plot]"')
        return
    from partwise.datasets.pictures import PALETTE

    rows = min(rows, len(X))
    figure = Figure(figsize=(8, 2 * rows), layout="constrained")
    axes = figure.subplots(rows, 4, squeeze=False)
    titles = ("given", "each pixel alone", "with its neighbours", "truth")
    for k in range(rows):
        for axis, title, picture in zip(axes[k], titles, [X[k], *(PALETTE[labels[k]] for labels in answers)], strict=True):
            axis.imshow(np.clip(picture, 0, 1))
            axis.set_axis_off()
            if k == 0:
                axis.set_title(title)
    figure.savefig(path, dpi=100)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
