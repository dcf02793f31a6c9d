"""How good predictions are, in the measures of each task.

Sequences: accuracy per token and per sequence; precision, recall and F1 of spans as conlleval counts them; how far chance could
have moved them (bootstrap intervals), and whether one model is better than another (paired tests).

Entities, under seqeval's names: `classification_report`, `f1_score`, `precision_score`, `recall_score`, `accuracy_score`,
`performance_measure`, in default and strict mode. `entity_matches` counts partial matches as MUC and nervaluate do,
`entity_confusion` says which types are taken for which, missed and spurious ones included.

Dependency trees: attachment scores, UAS and LAS (`attachment`).

Constituency trees: precision, recall and F1 of brackets (`brackets`).

Alignments: recall, precision and F1 of aligned pairs (`alignment`).

RNA structures: sensitivity and selectivity of base pairs (`base_pairs`).

Nodes of graphs, pixels, multilabel: accuracy, F1 and intersection over union (`nodes`).

Rankings of documents: NDCG and mean average precision (`retrieval`).

Rankings, of suspects say: average precision, precision and recall among the first (`ranking`).

Everything begins with *counts per sequence* (`sequence_counts`): their sums give the scores, resampling them the intervals.
Functions that end in ``_coded`` take numbered labels (see `partwise.text.chunk_schemes`) and are fast enough to run after every
epoch.
"""

from partwise.tasks.alignment.scores import AlignmentScores, alignment_scores
from partwise.tasks.common.error_ranking import average_precision, precision_at, recall_at
from partwise.tasks.common.resampling import Interval
from partwise.tasks.constituency.scores import BracketScores, bracket_scores
from partwise.tasks.dependency.scores import AttachmentScores, attachment_scores
from partwise.tasks.folding.scores import BasePairScores, base_pair_counts, base_pair_scores
from partwise.tasks.graphs.scores import LabelScores, NodeScores, node_scores, node_scores_coded
from partwise.tasks.ranking.scores import mean_average_precision, ndcg, ndcg_by_query
from partwise.tasks.tagging.counts import SequenceCounts, sequence_counts, sequence_counts_coded
from partwise.tasks.tagging.entity_matches import EntityConfusion, EntityMatches, entity_confusion, entity_matches
from partwise.tasks.tagging.entity_scores import (
    accuracy_score,
    classification_report,
    f1_score,
    get_entities,
    performance_measure,
    precision_recall_fscore_support,
    precision_score,
    recall_score,
)
from partwise.tasks.tagging.report import Report, report, report_coded
from partwise.tasks.tagging.resampling import Comparison, bootstrap_intervals, compare
from partwise.tasks.tagging.scorers import (
    Scorer,
    sequence_accuracy_scorer,
    span_f1_scorer,
    span_precision_scorer,
    span_recall_scorer,
    token_accuracy_scorer,
)
from partwise.tasks.tagging.scores import (
    SpanScores,
    sequence_accuracy,
    span_f1,
    span_scores,
    span_scores_coded,
    spans,
    token_accuracy,
)

__all__ = [
    "AlignmentScores",
    "AttachmentScores",
    "BasePairScores",
    "BracketScores",
    "Comparison",
    "EntityConfusion",
    "EntityMatches",
    "Interval",
    "LabelScores",
    "NodeScores",
    "Report",
    "Scorer",
    "SequenceCounts",
    "SpanScores",
    "accuracy_score",
    "alignment_scores",
    "attachment_scores",
    "average_precision",
    "base_pair_counts",
    "base_pair_scores",
    "bootstrap_intervals",
    "bracket_scores",
    "classification_report",
    "compare",
    "entity_confusion",
    "entity_matches",
    "f1_score",
    "get_entities",
    "mean_average_precision",
    "ndcg",
    "ndcg_by_query",
    "node_scores",
    "node_scores_coded",
    "performance_measure",
    "precision_at",
    "precision_recall_fscore_support",
    "precision_score",
    "recall_at",
    "recall_score",
    "report",
    "report_coded",
    "sequence_accuracy",
    "sequence_accuracy_scorer",
    "sequence_counts",
    "sequence_counts_coded",
    "span_f1",
    "span_f1_scorer",
    "span_precision_scorer",
    "span_recall_scorer",
    "span_scores",
    "span_scores_coded",
    "spans",
    "token_accuracy",
    "token_accuracy_scorer",
]
