"""Functions that keep a tensor of their trace, and where: for a test that imports this anew."""

import contextvars
import functools

import burn

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()


class Module:
    cache = None


module = Module()
kept_by_module = None


def to_global(x):
    global kept_by_module  # noqa: PLW0603 — the bug of the user's that is tried
    kept_by_module = x * 2.0
    return x


def to_attribute(x):
    module.cache = x * 2.0
    return x


def to_a_list_of_an_object(x):
    module.history = [x * 2.0]
    return x


def to_a_class(x):
    Module.cache = x * 2.0
    return x


def to_a_result(x):
    result = Module()
    result.output = x * 2.0
    return result


def to_a_graph(x):
    module.leaf = burn.Tensor.from_inner(x, AUTODIFF).require_grad() * 2.0
    return x


def to_a_view(x):
    module.view = x[0]
    return x


values_by_name = {}


def to_a_dict(x):
    values_by_name["last"] = x * 2.0
    return x


@functools.lru_cache
def cached(scale):
    return burn.full((2,), scale, device=CPU)


def to_a_cache(x):
    return x * cached(2.0)


def to_a_default(x, kept=[]):  # noqa: B006 — the bug of the user's that is tried
    kept.append(x * 2.0)
    return x


context = contextvars.ContextVar("context")


def to_a_context(x):
    context.set(x * 2.0)
    return x


def generated(x):
    yield x * 2.0
    yield x * 3.0


def to_a_generator(x):
    module.generator = generated(x)
    return next(module.generator)


def to_an_exception(x):
    try:
        y = x * 2.0
        raise ValueError(y)
    except ValueError as error:
        module.error = error
    return x


def to_a_function(x):
    y = x * 2.0
    module.function = lambda: y
    return x


def to_an_argument(x):
    module.function = functools.partial(burn.add, x * 2.0)
    return x


def to_a_set(x):
    module.seen = {x * 2.0}
    return x


ESCAPES = {
    to_global: "global variable 'kept_by_module' of escapes",
    to_attribute: "attribute 'cache' of an object of type Module",
    to_a_list_of_an_object: "attribute 'history' of an object of type Module",
    to_a_class: "global variable 'Module' of escapes",
    to_a_result: "attribute 'output' of an object of type Module",
    to_a_graph: "attribute 'leaf' of an object of type Module",
    to_a_view: "attribute 'view' of an object of type Module",
    to_a_dict: "global variable 'values_by_name' of escapes",
    to_a_cache: "global variable 'cached' of escapes",
    to_a_default: "the default of a parameter of to_a_default",
    to_a_context: "an object elsewhere",
    to_a_generator: "attribute 'generator' of an object of type Module",
    to_an_exception: "attribute 'error' of an object of type Module",
    to_a_function: "variable 'y' around to_a_function",
    to_an_argument: "attribute 'function' of an object of type Module",
    to_a_set: "attribute 'seen' of an object of type Module",
}
