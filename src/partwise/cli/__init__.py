"""The command line: one module per verb."""


def main() -> None:
    """Run ``partwise``."""
    import sys

    from partwise.cli import quick

    if not quick.run(sys.argv[1:]):
        from partwise.cli.app import app

        app()
