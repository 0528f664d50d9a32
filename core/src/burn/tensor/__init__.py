"""The public namespace: Tensor, and the functions on tensors.

A module per chapter of the array API standard. They hold no mathematics: they name axes and
dtypes that a user left out, and hand over to the op table.
"""
