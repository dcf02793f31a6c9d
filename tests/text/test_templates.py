"""Templates: the language, and the encoder against a slow twin that builds strings."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partwise.datasets import chunking_attributes
from partwise.engine.compilation import interpret
from partwise.text import vocabulary
from partwise.text.attributes import encode
from partwise.text.columns import code_tokens, read_columns, stream_columns
from partwise.text.template_encoder import TemplateEncoder
from partwise.text.templates import SETS, make_function, parse_template

# ---------------------------------------------------------------------------------------------------------------------
# The language
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("w", "w[0]"),
        (" w[ -1 ] | pos[+2] ", "w[-1]|pos[2]"),
        ("lower(w)", "lower(w[0])"),
        ("suffix3( lower(w[1]) )|__BOS__", "suffix3(lower(w[1]))|__BOS__"),
        ("match('[0-9]+', w[0])", "match('[0-9]+',w[0])"),
        (r"""search("it's|\"x", w)""", r"""search("it's|\"x",w[0])"""),
        ("fullmatch('%x[', w)", None),  # a wrong regular expression, not one of CRF++'s
        ("bias", "bias"),
        ("U05:%x[-1,0]/%x[0,1]", "U05:%x[-1,0]/%x[0,1]"),
        ("U%x[0,0]", "U%x[0,0]"),
        ("U", "U"),
        ("U[0]|B", "U[0]|B[0]"),
    ],
)
def test_templates_are_read(text, canonical):
    columns = ["w", "pos", "U", "B"]
    if canonical is None:
        with pytest.raises(ValueError, match="regular expression '%x\\[' is wrong"):
            parse_template(text, columns)
        return
    template = parse_template(text, columns)
    assert template.text == canonical
    assert parse_template(canonical, columns) == template


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wrd[0]", r"template 2: the template 'wrd\[0\]' refers to a column 'wrd', which is not there. The columns are: w, pos"),
        ("w[0", r"template 2: cannot read 'w\[0': expected '\]', got its end"),
        ("w[x]", r"expected an offset such as -1, got 'x\]' at character 3"),
        ("w[0] pos[0]", r"expected '\|' or the end, got 'pos\[0\]' at character 6"),
        ("w[0]|", "expected a column or a function, got its end"),
        ("w[5000]", "the offset 5000 is too far; at most 1000 tokens"),
        ("%x[0,0]", "must begin with U"),
        ("U1:%x[0]", r"a % must begin %x\[row,column\]"),
        ('U1:%t[0,0,"x"]', r"a % must begin %x\[row,column\]. \(For regular expressions write match"),
        ("X01:%x[0,0]", "must begin with U or B"),
        ("upper(w)", r"there is no function 'upper'. Functions are: lower, prefix<n>"),
        ("suffix0(w)", r"suffix0 must have a length in the range \[1, 200\]"),
        ("match(w)", "expected a regular expression in quotes"),
        ("match('(', w)", r"the regular expression '\(' is wrong"),
        ("lower(match('a', w))", r"lower cannot be applied to match\('a',w\[0\]\), which is a test"),
        ("lower(" * 200 + "w" + ")" * 200, "at most 100 functions"),
        ("w|" * 6000 + "w", "longer than 10000 characters"),
    ],
)
def test_wrong_templates_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        TemplateEncoder(["w[0]", text], ["w", "pos"])


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (("lower", None), "mcx-9½ß"),
        (("prefix", 3), "McX"),
        (("prefix", 8), None),
        (("suffix", 7), "McX-9½ß"),
        (("suffix", 1), "ß"),
        (("shape", None), "XxX-d½x"),
        (("match", "c"), None),
        (("search", "c"), ""),
        (("fullmatch", ".*9.."), ""),
    ],
)
def test_functions(function, value):
    assert make_function(*function)(["McX-9½ß", None]) == [value, None]
    assert make_function("short_shape", None)(["McDonald--1999s", ""]) == ["XxXx-dx", ""]


def test_files_of_templates(tmp_path):
    path = tmp_path / "template"
    path.write_bytes(b"\xef\xbb\xbf# Unigram\r\nU00:%x[-1,0]\r\nU01:%x[0,0]/%x[0,1]\r\n\r\n# Bigram\r\nB\r\n")
    encoder = TemplateEncoder(path)
    assert encoder.has_transitions and [template.text for template in encoder.templates] == [
        "U00:%x[-1,0]",
        "U01:%x[0,0]/%x[0,1]",
    ]
    path.write_text("U00:%x[0,0]\n")
    assert not TemplateEncoder(str(path)).has_transitions
    assert TemplateEncoder(["w[0]"]).has_transitions
    path.write_text("U00:%x[0,0]\n\nB01:%x[0,0]\n")
    encoder = TemplateEncoder(path)
    assert encoder.lines == ["U00:%x[0,0]", "B01:%x[0,0]"] and not encoder.has_transitions and encoder.pairs is not None
    path.write_text("# nothing\nB\n")
    with pytest.raises(ValueError, match="There are no templates in"):
        TemplateEncoder(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match="template: not valid utf-8"):
        TemplateEncoder(path)
    with pytest.raises(
        FileNotFoundError, match="'chunkng' is neither a file of templates nor a ready-made set: chunking, ner, phrases, words"
    ):
        TemplateEncoder("chunkng")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 0}, r"'min_count' parameter of TemplateEncoder must be an int in the range \[1, .*\]. Got 0 instead"),
        ({"hash_bits": 31}, r"'hash_bits' parameter of TemplateEncoder must be an int in the range \[1, 30\]. Got 31"),
        ({"hash_bits": True}, "Got True"),
        ({"hash_bits": 8, "min_count": 2}, "cannot go with 'hash_bits'"),
        ({"columns": ["w", "w"]}, "list of distinct names"),
        ({"columns": ["the word"]}, "list of distinct names"),
        ({"columns": ["word", "pos"]}, "the set 'chunking': the template .* refers to a column 'w'"),
    ],
)
def test_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        TemplateEncoder("chunking", **options)


# ---------------------------------------------------------------------------------------------------------------------
# The twin
# ---------------------------------------------------------------------------------------------------------------------


def cell(c, t, f=lambda x: x):
    return lambda s, i: f(s[i + t][c]) if 0 <= i + t < len(s) else None


def crfpp(c, t):
    def value(s, i):
        p = i + t
        return f"_B{p}" if p < 0 else f"_B+{p - len(s) + 1}" if p >= len(s) else s[p][c]

    return value


#: what is written, what its features are called, and its values at token i of sentence s, one function each
TEMPLATES = [
    ("w", "w[0]={}", cell(0, 0)),
    ("pos[-1]", "pos[-1]={}", cell(1, -1)),
    ("w[-2]|w[0]", "w[-2]|w[0]={}|{}", cell(0, -2), cell(0, 0)),
    ("w[1]|pos[0]|w[-1]|w", "w[1]|pos[0]|w[-1]|w[0]={}|{}|{}|{}", cell(0, 1), cell(1, 0), cell(0, -1), cell(0, 0)),
    ("lower(w[1])", "lower(w[1])={}", cell(0, 1, str.lower)),
    ("suffix2(w)", "suffix2(w[0])={}", cell(0, 0, lambda x: x[-2:] if len(x) > 1 else None)),
    ("prefix1(lower(w))|pos", "prefix1(lower(w[0]))|pos[0]={}|{}", cell(0, 0, lambda x: x.lower()[:1] or None), cell(1, 0)),
    ("search('b', w[-1])", "search('b',w[-1])", cell(0, -1, lambda x: "" if "b" in x else None)),
    ("search('b', w)|w[1]", "search('b',w[0])|w[1]={1}", cell(0, 0, lambda x: "" if "b" in x else None), cell(0, 1)),
    ("__BOS__", "__BOS__", lambda s, i: "" if i == 0 else None),
    ("__EOS__|w", "__EOS__|w[0]={1}", lambda s, i: "" if i == len(s) - 1 else None, cell(0, 0)),
    ("bias", "bias"),
    ("U0:%x[-2,0]/%x[1,1]", "U0:{}/{}", crfpp(0, -2), crfpp(1, 1)),
    ("U:%x[0,0]", "U:{}", crfpp(0, 0)),
    ("U:%x[2,0]", "U:{}", crfpp(0, 2)),
    ("U:%x[-1,1]", "U:{}", crfpp(1, -1)),
    ("U9", "U9"),
]


def twin(sentences, templates):
    """Per token, the features as pairs (name with places for values, values), in order, each once."""
    tokens = []
    for s in sentences:
        for i in range(len(s)):
            found = [(name, tuple(value(s, i) for value in values)) for _, name, *values in templates]
            tokens.append(list(dict.fromkeys(feature for feature in found if None not in feature[1])))
    return tokens


def numbered(tokens, numbers):
    return [[numbers[feature] for feature in token if feature in numbers] for token in tokens]


def as_lists(rows):
    assert rows.ptr.dtype == np.int64 and rows.index.dtype == np.int32 and rows.ptr[-1] == len(rows.index)
    return [rows.index[a:b].tolist() for a, b in zip(rows.ptr[:-1], rows.ptr[1:], strict=True)]


words = st.text("abB_é", max_size=3) | st.sampled_from(["_B-1", "_B+1"])
corpora_of_tokens = st.lists(st.lists(st.tuples(words, st.sampled_from("xyb")), max_size=5), max_size=6)
some_templates = st.lists(st.sampled_from(TEMPLATES), min_size=1, max_size=8, unique_by=lambda t: t[0])


@given(corpora_of_tokens, corpora_of_tokens, some_templates, st.integers(1, 3), st.data())
@settings(max_examples=100, deadline=None)
def test_encoder_is_the_twin(train, test, templates, min_count, data):
    tokens = twin(train, templates)
    occurrences = [feature for token in tokens for feature in token]
    numbers = {}
    for feature in dict.fromkeys(occurrences):
        if occurrences.count(feature) >= min_count:
            numbers[feature] = len(numbers)
    texts = [template[0] for template in templates]
    encoder = TemplateEncoder(texts, min_count=min_count)
    rows = encoder.fit_transform(train)
    assert as_lists(rows) == numbered(tokens, numbers) and rows.n_features == encoder.n_features == len(numbers)
    assert encoder.feature_names() == [name.format(*values) for name, values in numbers]
    # what was not seen in training is ignored; functions of unknown cells are not unknown
    expected = numbered(twin(test, templates), numbers)
    assert as_lists(encoder.transform(test)) == expected
    # the data in parts
    cut = data.draw(st.integers(0, len(train)))
    parts = TemplateEncoder(texts, min_count=min_count).fit(iter([code_tokens(train[:cut]), code_tokens(train[cut:])]))
    assert as_lists(parts.transform(train)) == as_lists(rows) and parts.feature_names() == encoder.feature_names()
    if min_count == 1:
        extended = TemplateEncoder(texts)
        assert as_lists(extended.extend(train[:cut])) + as_lists(extended.extend(train[cut:])) == as_lists(rows)
    # saved and restored
    state, tensors = encoder.to_state()
    restored = TemplateEncoder.from_state(json.loads(json.dumps(state)), tensors)
    assert as_lists(restored.transform(test)) == expected and restored.feature_names() == encoder.feature_names()
    # hashed: equal features have equal numbers whatever else there is, and here different ones differ
    hashed = TemplateEncoder(texts, hash_bits=30)
    names = {}
    for token, row in zip(
        tokens + twin(test, templates), as_lists(hashed.transform(train)) + as_lists(hashed.transform(test)), strict=True
    ):
        assert len(token) == len(row)
        for feature, number in zip(token, row, strict=True):
            assert names.setdefault(number, feature) == feature and 0 <= number < 2**30


def test_many_features_make_the_table_grow():
    sentences = [[(f"w{k % 4001}", f"t{k % 7}") for k in range(j, j + 50)] for j in range(0, 20_000, 40)]
    templates = [TEMPLATES[k] for k in (0, 2, 3, 12)]
    tokens = twin(sentences, templates)
    numbers = {}
    for token in tokens:
        for feature in token:
            numbers.setdefault(feature, len(numbers))
    encoder = TemplateEncoder([template[0] for template in templates])
    assert as_lists(encoder.fit_transform(sentences)) == numbered(tokens, numbers) and encoder.n_features > 40_000
    again = TemplateEncoder([template[0] for template in templates])
    assert sum((as_lists(again.extend([sentence])) for sentence in sentences), []) == numbered(tokens, numbers)


def test_features_with_one_hash_are_told_apart(monkeypatch):
    train = [[(f"w{k}", "x") for k in range(30)]]
    expected = as_lists(TemplateEncoder(["w[-1]|w[0]", "w"]).fit_transform(train))
    with interpret():
        assert as_lists(TemplateEncoder(["w[-1]|w[0]", "w"]).fit_transform(train)) == expected
        monkeypatch.setattr(vocabulary, "spread", lambda h: np.uint64(5))
        assert as_lists(TemplateEncoder(["w[-1]|w[0]", "w"]).fit_transform(train)) == expected


def test_hashes_are_the_same_everywhere_and_fold():
    rows = TemplateEncoder(["w", "w[-1]|w[0]"], hash_bits=20).transform([[("the",), ("dog",)]])
    assert rows.index.tolist() == [151982, 916216, 159828] and rows.n_features == 2**20
    tiny = TemplateEncoder("chunking", hash_bits=1).transform([[("the", "DT"), ("dog", "NN")]] * 3)
    assert all(len(set(row)) == len(row) for row in as_lists(tiny))
    assert TemplateEncoder(["w"], hash_bits=4).feature_name(3) == "hash=3"


def test_use_and_misuse():
    encoder = TemplateEncoder("chunking")
    with pytest.raises(ValueError, match="not fitted yet"):
        encoder.transform([[("a", "b")]])
    with pytest.raises(
        ValueError, match=r"f.txt: the template 'pos\[-2\]' refers to column 1 \('pos'\), but there are 1 columns"
    ):
        encoder.fit(read_columns(b"a\nb\n", name="f.txt"))
    with pytest.raises(ValueError, match=r"the template 'U:%x\[0,7\]' refers to column 7, but there are 1 columns"):
        TemplateEncoder(["U:%x[0,7]"]).fit([[("a",)]])
    with pytest.raises(TypeError, match="An iterator must give Columns, not list"):
        encoder.fit(iter([[("a", "b")]]))
    with pytest.raises(ValueError, match="it needs min_count=1"):
        TemplateEncoder("chunking", min_count=2).extend([[("a", "b")]])
    with pytest.raises(TypeError, match="template 1: must be a string. Got 3"):
        TemplateEncoder([3])
    assert len(encoder.fit_transform([]).ptr) == 1 and encoder.n_features == 0
    assert as_lists(encoder.fit_transform([[], [("a", "b")], []])) == [[0, 1, 2, 3]]
    assert encoder.feature_names() == ["w[0]=a", "pos[0]=b", "__BOS__", "__EOS__"]
    assert as_lists(encoder.transform([[("x", "b"), ("x", "x")]])) == [[1, 2], [3]]
    with pytest.raises(IndexError, match="There is no feature 4"):
        encoder.feature_name(4)
    surrogate = TemplateEncoder(["w"])
    surrogate.fit([[("\udc80",)]])
    assert TemplateEncoder.from_state(*surrogate.to_state()).feature_names() == ["w[0]=\udc80"]


@pytest.mark.parametrize("name", sorted(SETS))
def test_ready_made_sets_read_text_in_parts(name, tmp_path):
    text = b"The DT\nMcX-9 NNP\n\nI PRP\n\nran VBD\nto TO\nThe DT\nex-9 NN\n" * 3
    path = tmp_path / "corpus.gz"
    path.write_bytes(gzip.compress(text))
    whole = TemplateEncoder(name)
    rows = whole.fit_transform(read_columns(text))
    parts = TemplateEncoder(name).fit(stream_columns(path, chunk_bytes=10))
    assert parts.feature_names() == whole.feature_names() and len(set(whole.feature_names())) == whole.n_features
    assert sum((as_lists(parts.transform(part)) for part in stream_columns(path, chunk_bytes=10)), []) == as_lists(rows)


# ---------------------------------------------------------------------------------------------------------------------
# Model files may be hostile
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"templates": "chunking"}, "'templates' of the templates is chunking"),
        ({"templates": ["w[0]", 3]}, "must be a string"),
        ({"templates": ["w[0]", "x[0]"]}, "refers to a column 'x'"),
        ({"templates": ["w[0]"]}, "wrong shape"),
        ({"templates": ["w[0]", "w[-1]|pos[0]", "pos[1]"]}, None),
        ({"columns": None}, "'columns' of the templates"),
        ({"columns": ["w", 3]}, "distinct names"),
        ({"min_count": True}, "Got True"),
        ({"hash_bits": 99}, "Got 99"),
        ({"fitted": 1}, "'fitted' of the templates"),
        ({"template_keys": None}, "features of the templates are missing"),
        ({"template_keys": np.zeros((2, 3), np.int64)}, "features of the templates are missing or have a wrong shape"),
        ({"template_keys": np.array([[2, 0, -1]], np.int32)}, "belongs to no template"),
        ({"template_keys": np.array([[-1, 0, -1]], np.int32)}, "belongs to no template"),
        ({"template_keys": np.array([[0, 4, -1]], np.int32)}, "out of range"),
        ({"template_keys": np.array([[0, -1, -1]], np.int32)}, "out of range"),
        ({"template_keys": np.array([[0, 0, 0]], np.int32)}, "out of range"),
        ({"template_keys": np.array([[0, 1, -1], [0, 1, -1]], np.int32)}, "a feature occurs twice"),
        ({"template_values": None}, "values of the templates are missing"),
        ({"template_values": np.frombuffer(b"aaxy", np.uint8)}, "occurs twice"),
        ({"template_values": np.frombuffer(b"\xff\xffxy", np.uint8)}, "utf-8"),
        ({"template_value_offsets": np.array([0, 1, 2, 3, 5])}, "not in order"),
        ({"template_value_offsets": np.array([0, 3, 2, 3, 4])}, "not in order"),
        ({"template_value_offsets": np.array([0, 2**63 - 1, -(2**63), -1, 4])}, "not in order"),
        ({"template_value_offsets": np.zeros(0, np.int64)}, "offsets of the values"),
    ],
)
def test_state_is_not_trusted(change, message):
    encoder = TemplateEncoder(["w[0]", "w[-1]|pos[0]"])
    encoder.fit([[("a", "x"), ("b", "y")]])
    state, tensors = encoder.to_state()
    assert tensors["template_values"].tobytes() == b"abxy"
    for key, value in change.items():
        (tensors if key.startswith("template_") else state)[key] = value
    if message is None:
        assert TemplateEncoder.from_state(state, tensors).n_features == encoder.n_features
        return
    with pytest.raises(ValueError, match=message):
        TemplateEncoder.from_state(state, tensors)


def test_transitions_survive_saving():
    for templates, expected in ((["U:%x[0,0]", "B"], True), (["U:%x[0,0]"], False), (["w"], True), (["w", "U1:%x[0,0]"], True)):
        encoder = TemplateEncoder(templates)
        assert encoder.has_transitions == expected == TemplateEncoder.from_state(*encoder.to_state()).has_transitions


# ---------------------------------------------------------------------------------------------------------------------
# Real data
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.compiled
@pytest.mark.data
def test_chunking_is_crfsuites(corpora):
    encoder = TemplateEncoder("chunking")
    encoder.fit(read_columns(corpora / "conll2000" / "train.txt.gz"))
    assert encoder.n_features == 335_674
    check_against_strings(corpora / "conll2000" / "test.txt.gz")


@pytest.mark.data
@pytest.mark.slow
def test_chunking_is_crfsuites_on_the_training_part(corpora):
    check_against_strings(corpora / "conll2000" / "train.txt.gz")


def check_against_strings(path):
    """The same rows as the string version; even the numbers are the same, since both number features as they come."""
    numbers = {}
    strings = encode(
        [token for sentence in read_columns(path).sentences() for token in chunking_attributes(sentence)], numbers, grow=True
    )
    encoder = TemplateEncoder("chunking")
    rows = encoder.fit_transform(read_columns(path))
    np.testing.assert_array_equal(rows.ptr, strings.ptr)
    np.testing.assert_array_equal(rows.index, strings.index)
    assert encoder.feature_names() == list(numbers)
