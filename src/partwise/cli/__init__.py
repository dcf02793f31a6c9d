"""The command line: one module per verb."""


def main() -> None:
    """Run ``partwise``."""
    import gc
    import sys
    import warnings

    warnings.formatwarning = lambda message, *place: f"note: {message}\n"  # a line for people, without the place in our sources
    gc.set_threshold(100_000, 10, 10)  # modules that are loaded are no garbage: looking for it takes a tenth of the start
    try:
        from partwise.cli import quick

        if not quick.run(sys.argv[1:]):
            from partwise.cli.app import app

            app()
    finally:
        gc.freeze()  # nor need it be looked for at the end
