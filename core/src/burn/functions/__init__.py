"""The public functions, a module for each chapter of the array API standard and its like."""

from burn.public_calls import has_functions

has_functions(__name__)
