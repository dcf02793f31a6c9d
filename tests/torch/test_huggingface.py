"""A tiny randomly initialised transformer with a CRF, by itself and with the Trainer."""

from __future__ import annotations

import inspect
import itertools

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
transformers = pytest.importorskip("transformers")
import torch

from partwise.torch import CRF
from partwise.torch.huggingface import NOT_LABELLED, with_crf

LABELS = ["O", "B-X", "I-X"]


def config():
    return transformers.BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, max_position_embeddings=16,
        id2label=dict(enumerate(LABELS)), label2id={name: k for k, name in enumerate(LABELS)},
    )  # fmt: skip


@pytest.fixture
def model():
    torch.manual_seed(0)
    return with_crf(transformers.BertForTokenClassification(config()), loss="hinge", constraints="iob2").eval()


def batch():
    torch.manual_seed(1)
    ids = torch.randint(0, 20, (3, 6))
    labels = torch.tensor([[-100, 0, 1, -100, 2, -100], [-100, 1, 0, 0, 0, -100], [-100] * 6])
    return {"input_ids": ids, "attention_mask": torch.ones(3, 6, dtype=torch.long), "labels": labels}


def test_the_layer_sees_tokens_only(model):
    given = batch()
    found = model(**given)
    emissions, layer = found.logits, CRF(3, batch_first=True, loss="hinge", constraints="iob2", labels=LABELS)
    layer.load_state_dict(model.crf.state_dict())
    total = 0
    for i, places in enumerate(([1, 2, 4], [1, 2, 3, 4])):
        total = total - layer(emissions[i : i + 1, places], given["labels"][i : i + 1, places])
        assert found.best[i, places].tolist() == layer.decode(emissions[i : i + 1, places])[0]
    torch.testing.assert_close(found.loss, total / 7)
    assert (found.best[2] == NOT_LABELLED).all() and (found.best == NOT_LABELLED).sum() == 11
    mask = given["labels"] != -100
    again = model(given["input_ids"], given["attention_mask"], token_mask=mask)
    assert again.loss is None and torch.equal(again.best, found.best)
    everything = model(given["input_ids"], given["attention_mask"])
    assert (everything.best != NOT_LABELLED).all()
    for y in everything.best.tolist():
        assert y[0] != 2 and (0, 2) not in itertools.pairwise(y)


def test_parameters_of_forward_are_seen(model):
    assert {"input_ids", "attention_mask", "labels", "token_mask"} <= set(inspect.signature(model.forward).parameters)
    assert type(model).__name__ == "BertForTokenClassificationWithCRF"


def test_all_of_it_is_saved_and_read(model, tmp_path):
    model.save_pretrained(tmp_path)
    again = with_crf(transformers.BertForTokenClassification).from_pretrained(tmp_path).eval()
    for name, value in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value)
    assert again.crf.loss == "hinge" and torch.equal(again.crf.wall, model.crf.wall)
    given = batch()
    torch.testing.assert_close(again(**given).loss, model(**given).loss)
    assert torch.equal(again(**given).best, model(**given).best)


def test_a_model_without_a_layer_gets_one(tmp_path):
    transformers.BertForTokenClassification(config()).save_pretrained(tmp_path)
    model = with_crf(transformers.BertForTokenClassification).from_pretrained(tmp_path)
    assert 0 < float(model.crf.transitions.abs().max()) <= 0.1 and model.crf.loss == "crf"


def test_the_trainer_trains_it(tmp_path, monkeypatch):
    pytest.importorskip("accelerate")
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)  # a folder of tests has its name
    torch.manual_seed(0)
    model = with_crf(transformers.BertForTokenClassification(config()), constraints="iob2")
    data = []
    for k in range(24):
        ids = torch.randint(2, 20, (8 if k % 2 else 6,), generator=torch.Generator().manual_seed(k))
        labels = torch.where(ids < 8, 1, 0)
        data.append({"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels})

    def collate(some):
        pad = {"input_ids": 0, "attention_mask": 0, "labels": -100}
        of = {name: [one[name] for one in some] for name in pad}
        return {n: torch.nn.utils.rnn.pad_sequence(v, batch_first=True, padding_value=pad[n]) for n, v in of.items()}

    def metrics(given):
        (logits, best), gold = given.predictions, given.label_ids
        assert logits.shape == (*gold.shape, 3) and ((best == -100) == (gold == -100)).all()
        return {"accuracy": float((best == gold)[gold != -100].mean())}

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), max_steps=60, learning_rate=0.02, per_device_train_batch_size=8, report_to=[],
        save_strategy="no", disable_tqdm=True, use_cpu=True, seed=0, logging_steps=60, gradient_accumulation_steps=2,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model, arguments, train_dataset=data, eval_dataset=data, data_collator=collate, compute_metrics=metrics
    )
    before = trainer.evaluate()
    trainer.train()
    after = trainer.evaluate()
    assert after["eval_loss"] < 0.5 * before["eval_loss"] and after["eval_accuracy"] > 0.95


def test_what_is_no_model_is_named():
    with pytest.raises(ValueError, match="Expected a model of transformers"):
        with_crf(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="Expected a class of models"):
        with_crf(torch.nn.Linear)
