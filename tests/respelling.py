"""The same answer spelled otherwise: other names and lines, another function around it, axes as tuples, under jit."""

import ast
import functools
import inspect
import linecache
import textwrap

import jax

COLLECTIVES = ("psum", "pmean", "pmax", "pmin", "all_gather", "psum_scatter", "all_to_all", "ppermute", "axis_index")


class Respelled(ast.NodeTransformer):
    """Gives every variable that a function makes another name, and writes axes as tuples of names."""

    def __init__(self, names):
        self.names = {name: f"{name}_of_mine" for name in names}

    def visit_Name(self, node):
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in COLLECTIVES:
            axis = 0 if node.func.attr == "axis_index" else 1
            if len(node.args) > axis and isinstance(getattr(node.args[axis], "value", None), str):
                node.args[axis] = ast.Tuple([node.args[axis]], ast.Load())
        return node


def made_in(function):
    """The variables that a function assigns, inside of it or of a function in it; none that it declares global."""
    targets = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    given = {argument.arg for node in ast.walk(function) if isinstance(node, ast.arguments) for argument in every(node)}
    return targets - given


def every(arguments):
    """All arguments of a signature."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg or ast.arg("_")]


def written_otherwise(function):
    """The function from a rewritten source; as it is where its source does not make it, as with a closure."""
    if isinstance(function, functools.partial):
        return functools.partial(written_otherwise(function.func), *function.args, **function.keywords)
    if not inspect.isfunction(function) or function.__closure__:
        return function
    tree = ast.parse("\n" * 7 + textwrap.dedent(inspect.getsource(function)))
    (definition,) = tree.body
    if not isinstance(definition, ast.FunctionDef):
        return function
    definition.decorator_list = []
    source = ast.unparse(ast.fix_missing_locations(Respelled(made_in(definition)).visit(tree)))
    file, space = f"<respelled {function.__qualname__}>", dict(function.__globals__)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), space)
    return space[function.__name__]


def respelled(function, *, jit):
    """A function that does the same, with as little in common as can be; a program's also under `jax.jit`."""
    rewritten = written_otherwise(function)

    @functools.wraps(function)
    def around(*given, **named):
        def inside(*arrays):
            return rewritten(*arrays, **named)

        return jax.jit(inside)(*given) if jit else inside(*given)

    return around
