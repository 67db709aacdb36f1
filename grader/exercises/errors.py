"""JAX's errors in plain words: what it means, and what to look at next.

The error's own first line is always shown; this adds what a newcomer to many devices needs. The texts
matched are those of JAX 0.7 to 0.12.
"""

from __future__ import annotations

import re

from grader.exercises.answers import Problem

MEANINGS: tuple[tuple[str, str, str], ...] = (
    (
        "ShardingTypeError",
        r"Contracting dimensions are sharded|contracting dimensions to have consistent sharding",
        "The contracted dimension is cut in both operands, so several layouts of the product are possible, and on an "
        "Explicit mesh JAX does not choose. Say how the product should be laid out: `out_sharding=`, or `reshard` an "
        "operand.",
    ),
    (
        "ShardingTypeError",
        r"illegally sharded result",
        "By the rules, two dimensions of the result would be cut over the same mesh axis. One of them has to give way: "
        "`out_sharding=` or `reshard` says which.",
    ),
    (
        "ShardingTypeError",
        r"incompatible shardings for broadcasting|should have the same sharding",
        "The operands are laid out differently: cut over different axes, or one is cut where another is not. On an "
        "Explicit mesh nothing is moved unasked: `reshard` one of them.",
    ),
    (
        "ShardingTypeError",
        r"\.at\[\.\.\.\]",
        "Where the picked entries end up does not follow from the types. The long form of indexing has a place to "
        "say it: `a.at[index].get(out_sharding=...)`.",
    ),
    (
        "ShardingTypeError|NotImplementedError",
        r"unreduced",
        "An unreduced array is a sum that is not made yet: each device holds one part of it. Such arrays may be added "
        "to one another, and `reshard` makes the sum; nearly everything else has to wait for it.",
    ),
    (
        "ShardingTypeError|ValueError",
        r"slicing on sharded dims|sharded on the axis being|unsharded over the axis|"
        r"unsharded over the sorting|0th dimension of all xs",
        "The operation runs along a dimension that is cut, so a device would need what others hold. `reshard` first, "
        "or let the compiler arrange it inside `auto_axes`.",
    ),
    (
        "ValueError",
        r"The context mesh cannot be empty",
        "`shard_map` was not told over which mesh it runs, and none is set here: `mesh=` says so.",
    ),
    (
        "TypeError",
        r"in_specs argument must be a pytree .* but it was `None`",
        "Along Auto axes the type of an array does not say how it is laid out, so `shard_map` has to be told: by "
        "in_specs, with a spec for each argument.",
    ),
    (
        "ValueError|RuntimeError",
        r"not under a mesh context|requires a non-empty mesh in context|"
        r"Context mesh .* cannot be empty",
        "A bare P names axes, but not of which mesh, and no mesh is set here. `NamedSharding(mesh, P(...))` says both.",
    ),
    (
        "ValueError|AssertionError",
        r"can only refer to Auto axes|acts as an assert",
        "`with_sharding_constraint` is a hint for Auto axes. On an Explicit mesh the type says how an array is "
        "laid out; `reshard` changes it.",
    ),
    (
        "TypeError",
        r"Missing required keyword argument: 'out_sharding'",
        "Inside `auto_axes` layouts are the compiler's affair, so you have to say how the result is laid out when it "
        "comes out: call the wrapped function with `out_sharding=`.",
    ),
    (
        "DuplicateSpecError|ValueError",
        r"has duplicate entries|map at most one positional dimension",
        "One mesh axis stands twice in the spec of one array. It can split one dimension of that, and once.",
    ),
    (
        "ValueError",
        r"inferred to be possibly varying over|can't be statically inferred|replicat\w+ over mesh ax|"
        r"out_specs .*(is|are) (implicitly )?replicated",
        "out_specs promise that all devices along an axis hold the same block, and JAX cannot see why they would. "
        "Which output is it, and along which axis may it differ from device to device? Is a collective over that axis "
        "missing? Is the output meant to differ, so that out_specs should name the axis? Or was something cast as "
        "varying along an axis that cuts nothing? (An all_gather's "
        "result counts as varying although it is the same everywhere: where your JAX has it, `to='invarying'` says "
        "so.) Leave the check on, unless the exercise's text says otherwise: most often it has found what would "
        "come out wrong without a word.",
    ),
    (
        "TypeError|ValueError",
        r"dot_general requires contracting dimensions|contracting dim\w* .*(shape|size)|"
        r"matmul.*(mismatch|contract)|Incompatible shapes for dot|dot_general(?!.*batch).*shape",
        "These two do not fit along the dimension that is summed over. Is one of them turned round? Inside shard_map "
        "each device sees only its own blocks, and one may be a slice of that dimension, the other not the same slice. "
        "Which shapes have they, which should they have, and does a collective have to bring blocks together first? "
        "(An all_gather without `tiled=True` puts a dimension of its own in front.)",
    ),
    (
        "ValueError",
        r"Incompatible (types|shapes) for matmul arguments",
        "The last two dimensions of each are matrices; those in front of them have to be as long as each other, or 1, "
        "and laid out alike. Has one of the two a dimension that you did not expect? (An all_gather without "
        "`tiled=True` puts a dimension of its own in front.)",
    ),
    (
        "ValueError",
        r"vmap got inconsistent sizes",
        "`jax.vmap` goes through several arrays side by side, and those are not equally long along the dimensions that "
        "it goes through. Which dimension is it of each (`in_axes`; without it the first), and how long is that?",
    ),
    (
        "ValueError|IndivisibleError",
        r"evenly divi|equal division|divisible by|not divisible|IndivisibleError",
        "A dimension cannot be cut into that many equal parts. Which dimension did you mean to split, and over which "
        "axis?",
    ),
    (
        "TypeError|ValueError",
        r"incompatible shapes for broadcasting|could not be broadcast|broadcast\w* .*incompatible",
        "Arrays are combined entry by entry that do not fit: held against each other from the last dimension on, "
        "their lengths must be equal, or 1. Which of them has a shape that you did not expect? (Inside shard_map a "
        "block is shorter than the whole; a sum, a mean or a maximum along a dimension removes it, unless "
        "`keepdims=True`.)",
    ),
    (
        "TypeError",
        r"incompatible function arguments[\s\S]*Invoked with types:.*NoneType",
        "Something was made with `None` in the place of a value, such as a mesh. Which of the arguments that you "
        "hand on is `None` in this call?",
    ),
    (
        "AssertionError",
        r"^$",
        "It stopped without a text. Where that is no `assert` of yours, it is JAX's: under shard_map it most often "
        "means that a collective names an axis the mesh does not have.",
    ),
    (
        "NameError|ValueError|KeyError",
        r"unbound axis name|axis name '?\w+'? |Resource axis|not found in mesh",
        "A collective or a spec names an axis that is not there. The mesh's axes are in `mesh.axis_names`: is it the "
        "mesh that was given? Collectives work only inside shard_map.",
    ),
    (
        "ValueError",
        r"psum(_scatter)? can only accept axis_name",
        "The sum runs over an axis along which the devices already hold the same value, or over one that the mesh does "
        "not have.",
    ),
    (
        "ValueError",
        r"pcast can only accept|Unsupported pcast",
        "`jax.lax.pcast` changes whether a value may differ from device to device along an axis. Along which axes may "
        "this one, before it? `jax.typeof` says so.",
    ),
    (
        "ValueError",
        r"an in_specs entry which is too long",
        "A spec in in_specs has more entries than its argument has dimensions. Is this the argument, and this the "
        "shape, that you meant?",
    ),
    (
        "ValueError",
        r"for values of rank at least",
        "More dimensions are named in the spec than the array has. Which of the two is not as you expected, the spec "
        "or the shape?",
    ),
    (
        "ValueError",
        r"out_specs.*(too long|rank)|which is too long|has length \d+ .*rank",
        "A spec has more entries than the block has dimensions. Did a collective drop a dimension (`tiled=True` keeps "
        "it), or did you sum a dimension away?",
    ),
    (
        "ValueError",
        r"incompatible devices",
        "Different devices take part, or the same ones in another order: those of two operands, or of an operand and a "
        "mesh that the program names. JAX moves nothing that is committed. What did you mean to move, and to where?",
    ),
    (
        "RuntimeError",
        r"Array has been deleted|deleted or donated",
        "The array's memory was given away or freed: by `delete()`, by donation, or through another array that is the "
        "same memory under another name.",
    ),
    (
        "ValueError",
        r"memory_space of all inputs",
        "The operands are in different memories, one on the devices and one with the host, and JAX fetches nothing "
        "unasked. `jax.device_put(a, a.sharding.with_memory_kind(...))` moves one of them.",
    ),
    (
        "ValueError",
        r"must refer to an axis marked as manual",
        "in_specs and out_specs may name axes that are manual, and no others: those of the mesh, or those in "
        "axis_names where these are given. Which of them is meant? (An array may stay cut along other axes of the mesh "
        "without being said.)",
    ),
    (
        "ValueError",
        r"device_put device specification",
        "`device_put` takes one place for all that it is given, or as many as there are arrays, in the same tree. A "
        "list of devices is a tree of its own. What says of one array how it is laid out over several devices?",
    ),
    (
        "ValueError",
        r"(in|out)_shardings (specification|has)",
        "The shardings and what they describe are different trees. in_shardings are a tuple with an entry for each "
        "argument, out_shardings have one for each result; one sharding may stand for a whole list or dict of arrays.",
    ),
    (
        "ValueError",
        r"with_sharding_constraint shardings specification",
        "The layouts and what they describe are different trees: one layout may stand for a whole list or dict of "
        "arrays; else there is one for each array, under the same keys.",
    ),
    (
        "ValueError",
        r"pytree structure error",
        "The specs and what they describe are different trees; JAX's message says whether it is in_specs or out_specs. "
        "in_specs are a tuple with an entry for each argument, out_specs have one for each result; one spec may stand "
        "for a whole list or dict of arrays.",
    ),
    (
        "TypeError",
        r"carry input and carry output must have equal types[\s\S]*the (shapes|dtypes) do not match",
        "What a loop carries must come out of a turn with the shape and the dtype with which it went in. What does a "
        "turn make of the part that JAX names, and with what should the next one go on?",
    ),
    (
        "TypeError",
        r"carry input and carry output must have equal types",
        "A loop's carry must come out with the type it went in with, and inside shard_map the type also says along "
        "which axes a value may differ between devices. May it differ here? Then give the start the type that the "
        "loop ends with (`jax.lax.pcast`; `varying`, where the lesson has it). If not: which collective should make it "
        "the same in each turn?",
    ),
    (
        "TypeError",
        r"branches must have equal output types",
        "The branches of a `cond` must return the same type: shape, dtype and, inside shard_map, the axes along which "
        "a value may differ between devices. What comes out of a psum is the same along its axis, a device's own block "
        "is not. `jax.lax.pcast` (`varying`, where the lesson has it) gives one the type of the other; `jnp.where` "
        "takes both. Collectives belong outside of the branches.",
    ),
    (
        "TypeError",
        r"unhashable type: '\w*Tracer'",
        "A traced array stands where something is looked up: the name of an axis, a key of a dict, an entry of a set. "
        "What did you mean to stand there?",
    ),
    (
        "TypeError",
        r"unhashable type",
        "A key of a dict, an entry of a set, a spec: each has to be hashable. Lists, dicts and arrays are not, and "
        "slices are not before Python 3.12. Which number, text or tuple says the same as this one?",
    ),
    (
        "KeyError",
        r"^(?!None)[\w'\"]",
        "Something that has keys, most often a dict, was asked for this one, and has none of that name. Which keys has "
        "it, and which did you mean?",
    ),
    (
        "KeyError",
        r"",
        "Something that has keys, most often a dict, was asked for this one, and has none of that name. Which keys has "
        "it? And what else may stand there besides what you thought of, such as a tuple or None?",
    ),
    (
        "IndexError",
        r"index out of range|out of bounds",
        "A list, a tuple, an array or a text was asked for a place that it does not have. How long may it be in this "
        "case, and where do you count from?",
    ),
    (
        "ValueError|TypeError",
        r"cannot reshape",
        "A reshape keeps the number of entries. How many are there to begin with, and how many has the shape that was "
        "asked for?",
    ),
    (
        "ValueError",
        r"must match shard count|to equal x\.shape\[split_axis\]",
        "Without `tiled=True` the dimension that is split has to be exactly as long as there are devices along the "
        "axis. Is that the dimension, and the form, that you meant?",
    ),
    (
        "NonConcreteBooleanIndexError",
        r"",
        "In a program that is traced all shapes are known before it runs. How many entries a mask keeps is not: what "
        "keeps the shape, and puts a number where the mask is false?",
    ),
    (
        "TypeError",
        r"^(?!shard_map requires)[\s\S]*type '?<class '\S*[fF]unction'>",  # that asks for a mesh
        "A function stands where an array is due. `jax.shard_map` and `jax.jit` give functions: have these been "
        "called?",
    ),
    (
        "TypeError",
        r"type <class '\S*mesh\.\w*Mesh'>",
        "A mesh went into a function that takes arrays: a whole function under `jax.jit` takes every argument for one. "
        "Name it in `static_argnames`, or compile a function inside that does not take it.",
    ),
    (
        "TypeError",
        r"is not a valid JAX (array )?type|Error interpreting argument to .* as an? |Cannot determine dtype of|"
        r"as an abstract array|requires ndarray(, scalar, or None| or scalar) arguments, got (?!<class 'numpy)",
        "Where an array is due stands something that is none; the message names it, or its type. Were two arguments "
        "exchanged, or was another one meant? (`jnp.asarray` makes an array of a list; a collective takes a value "
        "first, and then the name of an axis.)",
    ),
    (
        "TracerBoolConversionError",
        r"",
        "Python cannot decide by a value that only the devices know: not in an `if` or a `while`, nor with `and`, "
        "`or`, `not`, `min` or `max`. Use jnp.where and its like, or compute it from static shapes.",
    ),
    (
        "TracerIntegerConversionError|TracerArrayConversionError|ConcretizationTypeError",
        r"",
        "Python, or NumPy, was to work with a number that only the devices know. `jax.numpy` and `jax.lax` compute "
        "with it where it is; what has to be known before, such as a shape or the turns of a Python loop, comes from "
        "static shapes.",
    ),
    (
        "ValueError",
        r"ppermute sources and destinations must be unique",
        "In one ppermute a device sends at most once, and receives at most once. Which one is a source twice, or a "
        "destination? (Places are counted round: behind the last comes the first.)",
    ),
    (
        "ValueError",
        r"^Size of label|^Einstein sum subscript .* correct number of indices",
        "In an einsum each operand has a letter for each of its dimensions, and a letter stands for one length. Which "
        "shapes have the operands? (Inside shard_map a block is shorter than the whole.)",
    ),
    (
        "TypeError",
        r"^(shard_map|all_to_all|all_gather|psum_scatter|ppermute|psum|pmean|pmax|pmin|device_put|make_mesh)\(\) "
        r"(got|missing|takes)",
        "The function that is named is JAX's, and was called with other arguments than it takes. What has it to be "
        "told, and under which names?",
    ),
    (
        "TypeError",
        r"unexpected keyword argument|missing \d+ required|takes \d+ positional",
        "A function was called with other arguments than it takes. Is it your answer? That is called with the "
        "arguments that its starter names: keep the parameters. Else it is one that you call yourself.",
    ),
    (
        "AttributeError|TypeError",
        r"has no attribute '?(partitions|_internal_device_list)|'P(artitionSpec)?' object has no attribute 'size'"
        r"|__init__\(self, mesh: object, spec: ",
        "Is a `NamedSharding` made here? It takes a mesh first, and a spec second. What stands in each place?",
    ),
    (
        "ValueError",
        r"op attribute '\w*dimension\w*' .*non-negative",
        "A dimension is counted from the end here, by a negative number. This step takes only numbers from the front.",
    ),
    (
        "AttributeError",
        r"numpy\.ndarray' object has no attribute '(at|sharding|addressable_shards|block_until_ready)'",
        "This is one of NumPy's arrays, and asks for something that only JAX's have. `jnp.asarray` makes one of the "
        "other.",
    ),
)


def in_plain_words(problem: Problem) -> str:
    """What went wrong, and what it means, for a student."""
    return "\n\n".join(filter(None, (stopped(problem), meaning(problem))))


def stopped(problem: Problem) -> str:
    """What went wrong, as Python says it."""
    if problem.kind == "refused" or not problem.error:
        return problem.message or "There is no answer."
    first = _theirs(_first(problem.message))
    given = re.search(r"^Invoked with types: (.*)", problem.message, re.MULTILINE)
    what = f": {first[:600]}{f' Given: {given[1]}.' if given else ''}" if first else ", without a text."
    return f"It stops with {problem.error}{what}"


# The line behind a heading: which spec is meant, which part of what a loop carries, which operation is refused.
WHICH = (
    r"\s*(\* )?((in|out)_specs\S* (is|refers) |(the passed )?args|the input carry|'stablehlo\.\w+' op )"
    r"|\s*shard_map (in|out)_specs\S*$|\s*(\* )?(one|some|most) ax[ei]s .*had size"
)


def _first(message: str) -> str:
    """A message's first line; where that is a heading, also the line that says which part of all it means."""
    first, *rest = message.strip().splitlines() or [""]
    which = next((line for line in rest if re.match(WHICH, line, re.IGNORECASE)), "")
    if not first.endswith((":", "at key path")) or not which:
        return first
    return f"{first} {which.strip().removeprefix('* ').rstrip(',;')}"


def _theirs(message: str) -> str:
    """A message of JAX's without the places of files, which are the grader's own or mean nothing to a student."""
    without = re.sub(r"(for jit )?(the )?function program at \S+?\.py:\d+", "your function", message)
    without = re.sub(r" *This error occurs at source: .*", "", without)  # a card shows the line itself
    return re.sub(r",? (defined )?at (\S*/\S+?:\d+(:\d+)?|0x[0-9a-f]+)", "", without)


def meaning(problem: Problem) -> str:
    """What a newcomer should know of it; "" where there is nothing to add."""
    if not problem.message and not problem.operands:
        return ""  # nobody gave JAX anything: it is the student's own
    for error, pattern, words in MEANINGS:
        if re.fullmatch(f".*({error})", problem.error) and re.search(pattern, problem.message, re.IGNORECASE):
            return words
    return ""
