"""Elementwise functions (chapter "Element-wise Functions" of the array API standard)."""

from burn.functions.elementwise.arithmetic import *
from burn.functions.elementwise.bitwise import *
from burn.functions.elementwise.comparison import *
from burn.functions.elementwise.complex_numbers import *
from burn.functions.elementwise.exponential import *
from burn.functions.elementwise.logical import *
from burn.functions.elementwise.rounding import *
from burn.functions.elementwise.special import *
from burn.functions.elementwise.trigonometric import *
