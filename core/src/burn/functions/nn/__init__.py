"""The functions of `burn.nn.functional` and `burn.optim`, a module for each family."""
