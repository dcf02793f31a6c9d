"""
Segments: names scored as wholes
================================

A tagger sees words one by one. `SegmentLabeler` scores whole segments: their length, their first and last words, and whether
somebody has written them down in a list. Here nobody can tell people from places by their words: only a list can.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from partwise import SegmentLabeler

rng = np.random.default_rng(0)
SYLLABLES = "ba do ke li mo ra su te vi zo".split()


def names(n):
    """Of one to three words, each of three syllables."""
    return [" ".join("".join(one).capitalize() for one in rng.choice(SYLLABLES, (rng.integers(1, 4), 3))) for _ in range(n)]


people, places = names(300), names(300)
FRAMES = ["{} met {} yesterday", "he saw {} and {} again", "in {} {} was at home", "then {} {} left for good"]


def corpus(people, places, n):
    """Sentences about two names each, and where these are: (label, first word, one past the last)."""
    X, y = [], []
    for _ in range(n):
        words, segments = [], []
        for word in rng.choice(FRAMES).split():
            if word == "{}":
                label, known = ("PER", people) if rng.random() < 0.5 else ("LOC", places)
                name = rng.choice(known).split()
                segments.append((label, len(words), len(words) + len(name)))
                words += name
            else:
                words.append(word)
        X.append(words)
        y.append(segments)
    return X, y


X, y = corpus(people[:150], places[:150], 300)
X_new, y_new = corpus(people[150:], places[150:], 150)

# %%
# Names of the test sentences are new, to everybody but the list: it has three of four places, and nobody's name.
dictionary = {"gazetteer": [place for k, place in enumerate(places) if k % 4]}
plain = SegmentLabeler("crf", min_count=5, learn_phrases=False, random_state=0).fit(X, y)
model = SegmentLabeler("crf", min_count=5, learn_phrases=False, dictionary=dictionary, random_state=0).fit(X, y)
scores = {"without": plain.score(X_new, y_new), "with the list": model.score(X_new, y_new)}
print({name: f"F1 {100 * f1:.1f}" for name, f1 in scores.items()})

# %%
# A sentence where two names stand side by side: the five best segmentations of both models, and how probable they are. Blocks are
# segments; what is not in the list has to be a person, or a place that is missing.
chosen = next(
    i
    for i, (words, right) in enumerate(zip(X_new, y_new, strict=True))
    if right[0][2] == right[1][1] and right[0][0] != right[1][0] and model.predict_segments([words]) == [right]
)
words = X_new[chosen]
colours = {"PER": "#d1495b", "LOC": "#00798c"}
figure, axes = plt.subplots(1, 2, figsize=(11, 3.4), layout="constrained", sharey=True)
for axis, (name, one) in zip(axes, {"without the list": plain, "with the list": model}.items(), strict=True):
    best = one.predict_kbest([words], 5)[0]
    for row, (segments, _) in enumerate(best):
        for label, begin, end in segments:
            axis.barh(row, end - begin - 0.12, 0.62, left=begin + 0.06, color=colours[label])
            axis.text((begin + end) / 2, row, label, color="white", ha="center", va="center", fontsize=8)
        p = float(np.exp(one.log_probability([words], [segments])[0]))
        axis.text(len(words) + 0.1, row, f"{100 * p:.0f} %", va="center")
    axis.set(title=name, xlim=(0, len(words) + 1.2), ylim=(len(best) - 0.4, -0.6), yticks=[])
    axis.set_xticks(np.arange(len(words)) + 0.5, words, rotation=35, ha="right")
    axis.spines[["top", "right", "left"]].set_visible(False)
plt.show()

# %%
# How much worse the answer gets if a word must not be what it is: max-marginals, the score of the best segmentation in which a
# word has each label. They need no probabilities, so a model trained with the hinge has them, too.
labels = [*model.classes_]
margins = model.predict_max_marginals([words])[0]
for word, row in zip(words, margins, strict=True):
    first, second = np.sort(row)[::-1][:2]
    print(f"{word:12}{labels[int(row.argmax())]:5}ahead by {first - second:.2f}")
