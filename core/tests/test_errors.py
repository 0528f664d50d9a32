"""The exceptions: what they are, and what they say."""

import pickle

import pytest

from burn import errors
from burn.errors import BurnError


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name != "BurnError"])
def test_every_error_is_a_burn_error_and_a_builtin_that_users_would_catch(name):
    kind = getattr(errors, name)
    assert issubclass(kind, BurnError)
    builtins = (ValueError, TypeError, IndexError, RuntimeError, OverflowError, BufferError)
    assert issubclass(kind, (*builtins, OSError))


def test_a_message_has_the_operation_the_rule_and_what_to_do():
    error = errors.ShapeError("they differ", hint="Make them equal", operation="add(a, b)")
    assert str(error) == "add(a, b): they differ. Make them equal"


def test_an_error_survives_pickling():
    error = errors.AxisError("axis 3", hint="Use 2", operation="sum")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is errors.AxisError
    assert str(again) == str(error)
