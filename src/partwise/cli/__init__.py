"""The command line: one module per verb."""


def main() -> None:
    """Run ``partwise``."""
    import gc
    import sys
    import warnings

    from partwise.cli.process import end_interrupted, fill_streams, hear_signals, was_interrupted

    hear_signals()
    warnings.formatwarning = lambda message, *place: f"note: {message}\n"  # a line for people, without the place in our sources
    gc.set_threshold(100_000, 10, 10)  # modules that are loaded are no garbage: looking for it takes a tenth of the start
    try:
        fill_streams()
        from partwise.cli import quick

        if not quick.run(sys.argv[1:]):
            from partwise.cli.app import app

            app()
    except KeyboardInterrupt:
        end_interrupted()
    except OSError as error:  # of verbs that do not say it themselves: help that cannot be written
        from partwise.cli.common import fail

        fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except Exception:
        if was_interrupted():  # while something was imported
            end_interrupted()
        raise
    finally:
        gc.freeze()  # nor need it be looked for at the end
