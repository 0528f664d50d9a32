"""Many small cases as one test: pytest takes longer for a test than such a case takes."""

import inspect


def together(cases):
    """Make one test of a function that takes a case, and then fixtures.

    It tries all cases, and fails with the exception of each that fails.
    """
    cases = list(cases)

    def decorate(function):
        def run(**fixtures):
            errors = []
            for case in cases:
                try:
                    function(case, **fixtures)
                except Exception as error:  # noqa: BLE001 — raised with the others
                    error.add_note(f"in the case {case!r}")
                    errors.append(error)
            if errors:
                raise ExceptionGroup(f"{len(errors)} of {len(cases)} cases fail", errors)

        signature = inspect.signature(function)
        fixtures = list(signature.parameters.values())[1:]
        run.__signature__ = signature.replace(
            parameters=[one.replace(kind=one.KEYWORD_ONLY) for one in fixtures]
        )
        run.__name__, run.__module__ = function.__name__, function.__module__
        run.__doc__ = function.__doc__
        return run

    return decorate
