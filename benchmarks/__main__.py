"""Run every benchmark: ``python -m benchmarks [--short] [name ...]``."""

import importlib

from benchmarks.harness import Row, arguments, report

NAMES = ("startup", "conll2000", "multiclass")

parser = arguments(__doc__)
parser.add_argument("names", nargs="*", default=NAMES, help=f"any of {', '.join(NAMES)}")
options = parser.parse_args()
for name in options.names:
    try:
        report(name, importlib.import_module(f"benchmarks.{name}").rows(options.short))
    except FileNotFoundError as error:
        report(name, [Row("-", name, "-", None, None, "-", f"skipped: {error}")])
