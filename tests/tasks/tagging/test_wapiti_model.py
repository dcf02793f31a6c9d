"""Models of Wapiti: one that it trained, and what it said of a text."""

import time
import tracemalloc

import numpy as np
import pytest

from partwise import ModelFileError, SequenceLabeler
from partwise.tasks.tagging.wapiti_model import read_wapiti_model

pytestmark = pytest.mark.interpreted

#: ``wapiti train -1 0.3 -2 0.01 --compact`` on three sentences
MODEL = (
    b"#mdl#2#22\n"
    b"#rdr#6/1/0\n"
    b"1:*,\n"
    b"11:u:w=%x[0,0],\n"
    b'28:u:s=%m[0,0,".?.?$"]/%X[-1,0],\n'
    b'29:*:c=%t[0,0,"^\\u"]%t[1,0,"\\d"],\n'
    b"11:b:p=%x[0,1],\n"
    b"21:u:f=%x[@1,1]%x[@-1,1],\n"
    b"#qrk#3\n"
    b"1:B,\n"
    b"1:O,\n"
    b"1:I,\n"
    b"#qrk#14\n"
    b"1:*,\n"
    b"7:u:w=\xc3\x89l,\n"
    b"11:u:s=\x89l/_x-1,\n"
    b"14:*:c=falsefalse,\n"
    b"7:u:w=vio,\n"
    b"10:u:s=io/\xc3\x89l,\n"
    b"6:b:p=VB,\n"
    b"6:u:w=la,\n"
    b"6:b:p=DT,\n"
    b"12:*:c=truetrue,\n"
    b"6:b:p=NN,\n"
    b"6:b:p=CD,\n"
    b"13:*:c=falsetrue,\n"
    b"5:b:p=.,\n"
    b"0=0x1.aab3a6ad8e3dcp-6\n3=-0x1.ccfc53f842c6dp-3\n5=0x1.ea8d8c54e2854p+0\n9=-0x1.d4e5a7148c0e6p-2\n"
    b"10=0x1.6a57cbebb2dd1p-2\n12=0x1.d8e27cb01b4ccp-3\n15=0x1.d8e27cb01b4ccp-3\n18=0x1.b6fb8e0338688p-3\n"
    b"22=0x1.b4f60a9cce00cp-1\n23=0x1.2f7ab05ee174dp-1\n31=0x1.41b9aac890ac8p+0\n32=-0x1.666d90d2a7873p-4\n"
    b"34=0x1.dbb80c9b3038p-3\n37=0x1.f3962cc8be62ap-1\n45=0x1.a5fa0e690075p-2\n51=0x1.481b05a72ea86p-1\n"
    b"62=0x1.d236ecaf12e4cp-3\n71=0x1.800836282cabbp+0\n80=0x1.528c6a5b8e6c1p-2\n88=0x1.69f8c6a61fb35p-1\n"
    b"97=0x1.c15cba6ab4a6ep+0\n106=0x1.8897f4a6656aep-4\n"
)
#: a text, and what ``wapiti label -p -s`` wrote beside it: label and its probability
LABELLED = [
    [
        ("La", "DT", "B", 0.825616),
        ("niña", "NN", "I", 0.764816),
        ("vio", "VB", "O", 0.836830),
        ("la", "DT", "B", 0.919612),
        ("Unión", "NN", "I", 0.904144),
    ],
    [
        ("Ana", "NN", "B", 0.339146),
    ],
    [
        ("!", ".", "B", 0.768295),
        ("2nd", "CD", "I", 0.846938),
        ("Él", "PRP", "O", 0.810162),
    ],
]
TEXTS = [[row[:2] for row in sentence] for sentence in LABELLED]


def test_labels_and_probabilities_are_those_of_wapiti():
    tagger = read_wapiti_model(MODEL)
    assert tagger.predict(TEXTS) == [[row[2] for row in sentence] for sentence in LABELLED]
    labels = tagger.labeler.classes_.tolist()
    for sentence, marginals in zip(LABELLED, tagger.predict_marginals(TEXTS), strict=True):
        for (*_, label, p), row in zip(sentence, marginals, strict=True):
            assert row[labels.index(label)] == pytest.approx(p, abs=1e-6)


def test_it_is_a_model_like_others(tmp_path):
    """Features of label pairs that are attributes: saved, loaded, checked."""
    tagger = read_wapiti_model(MODEL)
    path = tmp_path / "model"
    tagger.labeler.save(path)
    again = SequenceLabeler.load(path)
    x = [tagger.attributes(text) for text in TEXTS]
    assert again.predict(x) == tagger.predict(TEXTS)
    with pytest.raises(ValueError, match="cannot go on learning"):
        again.partial_fit(x, tagger.predict(TEXTS))
    with pytest.raises(ValueError, match="stands twice in a token"):
        again.predict([[["b:p=DT", "b:p=DT"]]])


def written(pattern, sentence, t=0):
    text = f"#mdl#2#0\n#rdr#1/9/0\n{len(pattern.encode())}:{pattern},\n#qrk#1\n1:A,\n#qrk#1\n1:u,\n"
    return read_wapiti_model(text.encode()).attributes(sentence)[t][0]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("u:%x[0,0]/%X[0,0]", "u:AbC/abc"),
        ("u:%x[-1,0]%x[-4,0]%x[-5,0]%x[-9,0]", "u:_x-1_x-4_x-#_x-#"),
        ("u:%x[ 2, 0]%X[6,0]", "u:_x+1_x+#"),
        ("u:%x[@1,0]%x[@-1,0]%x[@9,1]", "u:AbCd2_x+#"),
        ('U:%t[0,0,"b"]%T[0,0,"^b"]%t[0,0,"C$"]', "u:truefalsetrue"),
        ('u:%m[0,0,"\\l"]%M[0,0,"\\u"]%m[0,0,"^\\U\\a"]', "u:ba"),
        ('u:%m[0,0,".?$"]|%m[0,0,"^.?.?"]|%m[1,0,"\\d*$"]|%m[0,0,"^.*"]', "u:C|Ab|2|"),
        ('u:%m[0,0,"\\b\\""]%t[1,0,"\\D\\w"]%m[0,0,"x"]', "u:true"),
        ("u:100", "u:100"),
    ],
)
def test_patterns(pattern, found):
    assert written(pattern, [("AbC", "x"), ("d2", "y")]) == found


def test_cells_that_are_features():
    text = b"#mdl#3\n#rdr#0/0\n#qrk#2\n1:A,\n1:B,\n#qrk#3\n3:u=x,\n3:b=x,\n1:*,\n1=0x1p+0\n4=0x1p+3\n7=0x1p+1\n"
    with pytest.raises(ModelFileError, match="expected 4 weights, got 3"):
        read_wapiti_model(text.replace(b"#mdl#3", b"#mdl#4"))
    tagger = read_wapiti_model(text)
    assert tagger.tag([("u=x",), ("b=x", "u=y"), ("*",)]) == ["B", "A", "B"]
    automatic = read_wapiti_model(text.replace(b"#rdr#0/0", b"#rdr#0/0/1"))
    assert automatic.attributes([("=x", "=z")]) == [["u=x", "u=z"]]
    assert np.isfinite(automatic.predict_marginals([[("=x",)]])[0]).all()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (b"#mdl#2#", b"#mdl#0#", "only those of CRFs"),
        (b"#mdl#", b"#mud#", "expected '#mdl#2#'"),
        (b"1:*,", b"9:*,", "expected a string with its length at byte"),
        (b"%x[0,0]", b"%y[0,0]", "cannot be read"),
        (b"#rdr#6/1", b"#rdr#6/0", "look at 2 columns, its header has 1"),
        (b"0=", b"0:", "is not a weight"),
        (b"0=", b"999999=", "there is a weight 999999"),
        (b"0=", b"3=", "a weight is there twice"),
        (b"0=0x", b"0=inf#0x", "hexadecimal|float"),
        (b"0=0x1", b"0=0x1p+9999 ", "invalid|large|hexadecimal"),
        (b"1:I,", b"1:B,", "a label occurs twice"),
    ],
)
def test_damaged_files_are_refused(before, after, message):
    assert before in MODEL
    with pytest.raises(ModelFileError, match=message):
        read_wapiti_model(MODEL.replace(before, after, 1))


def test_long_cells_take_no_time_of_a_square():
    """With a star, the first bytes are looked at; what repeats nothing sees the end of any cell."""
    cell = "a" * 200_000 + "b"
    begin = time.process_time()
    assert written('u:%t[0,0,"a*c"]', [(cell,)]) == "u:false"
    assert written('u:%m[0,0,".?.?$"]', [(cell,)]) == "u:ab"
    assert time.process_time() - begin < 5.0  # minutes before


def test_pairs_take_room_for_the_weights_that_they_have(monkeypatch):
    """A feature of pairs with one weight is not a table of all labels by all labels."""
    L, n = 1000, 30
    labels = "".join(f"4:{k:04},\n" for k in range(L))
    observations = "".join(f"4:b:{k:02},\n" for k in range(n))
    weights = "".join(f"{k * L * L}=0x1p+0\n" for k in range(n))
    text = f"#mdl#2#{n}\n#rdr#1/1/0\n9:b:%x[0,0],\n#qrk#{L}\n{labels}#qrk#{n}\n{observations}{weights}".encode()
    tracemalloc.start()
    tagger = read_wapiti_model(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tagger.labeler.weights_.size < 1.1 * L * L and peak < 80e6  # 240 MB more before
    monkeypatch.setattr("partwise.engine.memory.available_memory", lambda: 1e6)
    with pytest.raises(MemoryError, match="A model of 1,000 labels and 0 features"):
        read_wapiti_model(text)
