"""The command line: one module per verb."""


def main() -> None:
    """Run ``partwise``."""
    from partwise.cli.app import app

    app()
