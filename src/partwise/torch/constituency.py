"""Constituency trees: a binary tree over the words, and a label for each of its spans; with scores of rules, or without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from partwise.torch.distribution import (
    StructuredDistribution,
    check_device,
    check_labels,
    check_lengths,
    check_scores,
    check_set,
    integers,
)
from partwise.torch.end_to_end import laid_end_to_end
from partwise.torch.reference import nothing_to_sum


class Constituency(StructuredDistribution):
    """The distribution over binary trees whose spans have scores.

        s(y) = sum of spans[i, j, label] over the 2 n - 1 spans of a tree
             + sum of rules[A, B, C] over those of several words, their label being A and those of their children B and C

    Parameters
    ----------
    spans : Tensor (B, n + 1, n + 1) or (B, n + 1, n + 1, L), or (words, n + 1) or (words, n + 1, L) with `cu_seqlens`
        Score of the span of words i .. j - 1, with each label; only entries with i < j are looked at, and padding may hold
        anything. Single words are spans, too: leave their scores zero where tags are not predicted.
    rules : Tensor (S, L, L) or (B, S, L, L), optional
        Scores of a label above the labels of its first and its second child: a grammar. The first S labels are those that have
        rules; the others stand above single words only. See also `of_grammar`.
    roots : Tensor (L,) or (B, L), optional
        Scores of the label of the whole sentence, beside those of its span.
    lengths : integers (B,), optional
        Words of each sentence; all n by default.
    cu_seqlens : integers (B + 1,), optional
        Where sentences begin whose words lie end to end (padded inside), a row for each word that a span begins with; n is then
        the number of words of the longest one. A nested tensor (torch.jagged) says it itself.
    validate : bool
        Whether NaN and +inf are looked for, on the CPU.

    Notes
    -----
    An output is (B, 2 n - 1) integers, one for each span: ``(j (j - 1) / 2 + i) L + label``, the same whatever the padding
    (`spans_of` takes them apart, `codes_of` makes them). They come in pre-order and are taken in any order. `marginals` has the
    shape of `spans`; with rules it is a pair, the second being how often each rule is used, (B, S, L, L). Trees that are not binary have a label for spans that are no constituents, and score it zero; as a target
    such a tree is a set of binary ones (`trees_with`).

    Cost: O(n^2 L + n^3) time, O(n^2) memory beside the scores; with R rules O(n^3 R) time and O(n^2 L) memory on the CPU, and
    O(n R) more, for spans of one width, elsewhere.

    Examples
    --------
    >>> tree = Constituency(torch.zeros(1, 5, 5))
    >>> round(float(tree.log_partition.exp()))  # binary trees over four words
    5
    """

    structure = "spans"

    def __init__(
        self,
        spans: Tensor,
        rules: Tensor | None = None,
        roots: Tensor | None = None,
        *,
        lengths: Any = None,
        cu_seqlens: Any = None,
        validate: bool = True,
    ):
        spans, self.packing = laid_end_to_end(spans, cu_seqlens, lengths, what="words")
        if self.packing is not None:
            spans = check_scores(spans, "spans", 3 if isinstance(spans, Tensor) and spans.dim() == 3 else 2, validate)
            spans, lengths = self._padded_rows(spans), self.packing.lengths
        self.labelled = isinstance(spans, Tensor) and spans.dim() == 4
        if isinstance(spans, Tensor) and spans.dim() in (3, 4) and (spans.shape[1] != spans.shape[2] or spans.shape[1] < 1):
            raise ValueError(f"'spans' must be (B, n + 1, n + 1) for n words, or (..., L). Got {tuple(spans.shape)}.")
        spans = check_scores(spans, "spans", 4 if self.labelled else 3, validate)
        B, n = spans.shape[0], spans.shape[1] - 1
        lengths = check_lengths(lengths, B, n, "sentence")
        spans = spans if self.labelled else spans[..., None]
        check_labels(spans, "spans")
        L, width = spans.shape[-1], max(2 * n - 1, 0)
        if roots is not None:
            roots = roots[None] if isinstance(roots, Tensor) and roots.dim() == 1 else roots
            roots = check_scores(roots, "roots", 2, validate)
            check_device(roots, "roots", spans, "spans")
            if roots.shape not in ((1, L), (B, L)):
                raise ValueError(f"'roots' must have shape ({L},) or ({B}, {L}). Got {tuple(roots.shape)}.")
            place = torch.arange(n + 1, device=spans.device)
            whole = (place == lengths.to(spans.device)[:, None])[:, None] & (place == 0)[:, None]
            spans = torch.where(whole[..., None], spans + roots[:, None, None].to(spans.dtype), spans)
        if rules is None:
            super().__init__((spans,), lengths, [L], width)
            return
        rules = rules[None] if isinstance(rules, Tensor) and rules.dim() == 3 else rules
        rules = check_scores(rules, "rules", 4, validate)
        check_device(rules, "rules", spans, "spans")
        if rules.shape[0] not in (1, B) or rules.shape[1] > L or rules.shape[2:] != (L, L):
            raise ValueError(f"'rules' must have shape (S, {L}, {L}) or ({B}, S, {L}, {L}), S <= {L}. Got {tuple(rules.shape)}.")
        self.structure = "rules"
        super().__init__((spans, rules.to(spans.dtype)), lengths, [L, rules.shape[1]], width)

    @classmethod
    def of_grammar(
        cls, words: Tensor, rules: Tensor, roots: Tensor | None = None, *, lengths: Any = None, validate: bool = True
    ) -> Constituency:
        """The trees of a context-free grammar in Chomsky's form, whose rules have scores: with log probabilities, a PCFG.

        Parameters
        ----------
        words : Tensor (B, n, P)
            Scores of each of P tags above each word.
        rules : Tensor (S, S + P, S + P) or (B, S, S + P, S + P)
            Scores of each of S symbols above two children, symbols first and then tags; -inf where there is no such rule.
        roots : Tensor (S,) or (B, S), optional
            Scores of the symbol above the sentence.

        Notes
        -----
        Labels are symbols, then tags. A sentence of a single word has no tree: its symbol would have no rule.

        Examples
        --------
        >>> words = torch.full((1, 3, 1), 0.5).log()  # three words of probability 0.5 each, below one tag
        >>> rules = torch.tensor([[[0.0, 0.0], [0.2, 0.8]]]).log()  # S -> tag S, S -> tag tag
        >>> [round(float(p), 4) for p in Constituency.of_grammar(words, rules).log_partition.exp()]  # 0.2 * 0.8 * 0.5 ** 3
        [0.02]
        """
        rules, words = check_scores(rules, "rules", rules.dim() if rules.dim() in (3, 4) else 3), check_scores(words, "words", 3)
        (B, n, P), S = words.shape, rules.shape[-3]
        if rules.shape[-2:] != (S + P, S + P):
            raise ValueError(f"'rules' must have shape (S, S + {P}, S + {P}), of S symbols and {P} tags. Got {tuple(rules.shape)}.")
        below = torch.cat([words.new_full((B, n, S), -torch.inf), words], -1)
        spans, place = words.new_zeros(B, n + 1, n + 1, S + P), torch.arange(n, device=words.device)
        spans[:, place, place + 1] = below
        roots = words.new_zeros(S) if roots is None else check_scores(roots, "roots", roots.dim(), validate)
        if roots.shape not in ((S,), (B, S)):
            raise ValueError(f"'roots' must have shape ({S},) or ({B}, {S}). Got {tuple(roots.shape)}.")
        roots = torch.nn.functional.pad(roots, (0, P), value=-torch.inf)
        return cls(spans, rules, roots, lengths=lengths, validate=validate)

    @property
    def n_labels(self) -> int:
        """L; 1 where spans have no labels."""
        return int(self.sizes[0])

    def spans_of(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Where the spans of outputs begin, where they end, and their labels; of padding, the first word."""
        number = outputs // self.n_labels
        begins, ends = (table.to(outputs.device) for table in self._tables())
        return begins[number], ends[number], outputs % self.n_labels

    def codes_of(self, begins: Tensor, ends: Tensor, labels: Tensor | int = 0) -> Tensor:
        """Spans as the integers of outputs."""
        return (ends * (ends - 1) // 2 + begins) * self.n_labels + labels

    def trees_with(self, labels: Tensor) -> Tensor:
        """The set of all binary trees that have given constituents, as a target: bool, (B, n + 1, n + 1, L).

        `labels` (B, n + 1, n + 1) is the label of each span that is a constituent, and 0 for all others: these have the label 0
        in the trees, and none crosses a constituent.
        """
        labels = labels.to(self.tensors[0].device)
        if labels.shape != self.tensors[0].shape[:3]:
            raise ValueError(f"Expected a label for each span, {tuple(self.tensors[0].shape[:3])}. Got {tuple(labels.shape)}.")
        there = (labels > 0).long()
        place = torch.arange(there.shape[1], device=there.device)
        before = (place[:, None] < place).long()
        further = (there.flip(2).cumsum(2).flip(2) - there) * before  # [i, b]: constituents that begin at i < b and end behind b
        cross = further.sum(1, keepdim=True) - further.cumsum(1)
        earlier = (there.cumsum(1) - there) * before  # [a, j]: constituents that begin before a and end at j > a
        cross = cross + earlier.cumsum(2) - earlier
        fine = torch.nn.functional.one_hot(labels.clamp(min=0), self.n_labels).bool()
        return fine & (cross == 0)[..., None]

    def _tables(self) -> tuple[Tensor, Tensor]:
        """Begins and ends by numbers of spans; there is one even where there are no words."""
        n = max(self.tensors[0].shape[1] - 1, 1)
        ends = torch.arange(1, n + 1).repeat_interleave(torch.arange(1, n + 1), output_size=n * (n + 1) // 2)
        return torch.arange(len(ends)) - ends * (ends - 1) // 2, ends

    def _inside(self) -> Tensor:
        return (torch.arange(self.width) < 2 * self.lengths[:, None] - 1).to(self.tensors[0].device)

    def check_outputs(self, outputs: Tensor) -> Tensor:
        """Outputs as int64 (B, 2 n - 1), zero behind the end; an error names the sentence and the span."""
        outputs, B = integers(outputs, "outputs"), self.lengths.shape[0]
        if outputs.shape != (B, self.width):
            raise ValueError(
                f"Expected twice as many spans as words, less one, shape ({B}, {self.width}). Got {tuple(outputs.shape)}."
            )
        inside = self._inside().to(outputs.device)
        outputs = torch.where(inside, outputs.long(), 0)
        if outputs.device.type == "cpu" and not torch.compiler.is_compiling():
            number = outputs // self.n_labels
            sizes = self.lengths * (self.lengths + 1) // 2
            wrong = ((outputs < 0) | (number >= sizes[:, None]) & inside).nonzero()
            if len(wrong):
                i, t = wrong[0].tolist()
                raise ValueError(
                    f"sentence {i}: its span number {t} must be below {int(sizes[i]) * self.n_labels}. Got {int(outputs[i, t])}."
                )
            begins, ends, _ = self.spans_of(outputs)
            a, b, x, y = begins[:, :, None], ends[:, :, None], begins[:, None], ends[:, None]
            bad = ((a < x) & (x < b) & (b < y)) | ((a == x) & (b == y)).tril(-1)
            bad = (bad & inside[:, :, None] & inside[:, None]).nonzero()
            if len(bad):
                i, t, u = bad[0].tolist()
                one, two = ((int(begins[i, k]), int(ends[i, k])) for k in (t, u))
                raise ValueError(f"sentence {i}: the spans {one} and {two} cross, or are the same.")
        return outputs

    def score_of(self, outputs: Tensor) -> Tensor:
        spans, *rules = self.tensors
        begins, ends, labels = self.spans_of(self.check_outputs(outputs).to(spans.device))
        if not self.width:
            return nothing_to_sum(len(spans), *self.tensors)
        places = (begins * spans.shape[1] + ends) * self.n_labels + labels
        gained = spans.flatten(1).gather(1, places)
        if rules:
            gained = gained + self._of_rules(rules[0], begins, ends, labels)
        return torch.where(self._inside(), gained, 0.0).sum(1)

    def _of_rules(self, rules: Tensor, begins: Tensor, ends: Tensor, labels: Tensor) -> Tensor:
        """The score of the rule that each span of a tree has its children by; 0 for words."""
        inside, (S, L) = self._inside(), rules.shape[1:3]
        shorter = inside[:, None] & (ends[:, None] - begins[:, None] < (ends - begins)[..., None])
        first = torch.where(shorter & (begins[:, None] == begins[..., None]), ends[:, None], -1).argmax(-1)
        second = torch.where(shorter & (ends[:, None] == ends[..., None]), -begins[:, None], -self.width - 1).argmax(-1)
        places = (labels.clamp(max=S - 1) * L + labels.gather(1, first)) * L + labels.gather(1, second)
        found = rules.flatten(1).expand(len(labels), -1).gather(1, places)
        found = torch.where(labels < S, found, -torch.inf)
        return torch.where(inside & (ends - begins > 1), found, 0.0)

    def cost_tensors(self, target: Any, cost: Any = None) -> list[Tensor | None]:
        """1 for a span that is not in the tree; for a wrong label of one that is `cost`, 1 by default. Sets: 1 outside."""
        spans, *others = self.tensors
        rest = [None] * len(others)
        if isinstance(target, Tensor) and target.dtype == torch.bool:
            return [(~self._full(target)).to(spans), *rest]
        outputs = self.check_outputs(target).to(spans.device)
        begins, ends, labels = self.spans_of(outputs)
        inside = self._inside()
        which = torch.arange(outputs.shape[0], device=spans.device)[:, None].expand_as(outputs)[inside]
        begins, ends, labels = begins[inside], ends[inside], labels[inside]
        there = torch.zeros(spans.shape[:3], dtype=torch.bool, device=spans.device)
        right = torch.zeros(spans.shape, dtype=torch.bool, device=spans.device)
        there[which, begins, ends], right[which, begins, ends, labels] = True, True
        of_label = torch.as_tensor(1.0 if cost is None else cost).to(spans)
        wrong = torch.where(there[..., None], of_label, torch.ones_like(of_label))
        return [torch.where(right, torch.zeros_like(of_label), wrong), *rest]

    def restricted(self, allowed: Tensor) -> Constituency:
        """Only spans (and labels) that are allowed: bool, in the shape of the spans."""
        spans, *rules = self.tensors
        return self._with([spans.masked_fill(~self._full(allowed), -torch.inf), *rules])

    def _full(self, allowed: Tensor) -> Tensor:
        allowed = self._padded_rows(check_set(allowed).to(self.tensors[0].device))
        allowed = allowed[..., None] if allowed.dim() == 3 else allowed
        try:
            return allowed.expand(self.tensors[0].shape)
        except RuntimeError:
            shape = tuple(self.tensors[0].shape)
            raise ValueError(f"Sets must have the shape of the scores, {shape}. Got {tuple(allowed.shape)}.") from None

    def _shaped(self, tensors: Sequence[Tensor]) -> Any:
        spans, *rules = tensors
        spans = self._packed_rows(spans if self.labelled else spans[..., 0])
        return (spans, rules[0]) if rules else spans

    def _padded_rows(self, values: Any) -> Any:
        """With a row behind that of the last word, which no span begins with."""
        if self.packing is None or not self.packing.is_packed(values):
            return values
        values = self.packing.padded(values)
        return (
            torch.cat([values, torch.zeros_like(values[:, :1])], 1)
            if self.packing.width
            else values.new_zeros(len(values), 1, *values.shape[2:])
        )

    def _packed_rows(self, values: Tensor) -> Tensor:
        return values if self.packing is None else self.packing.packed(values[:, :-1])
