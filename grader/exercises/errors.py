"""What an error of JAX means, by a name for it; the sentences are in `grader.wording.errors`.

The messages that are matched are those of JAX 0.7 to 0.12.
"""

from __future__ import annotations

import re

from grader.exercises.answers import Problem
from grader.findings.finding import Finding
from grader.findings.problems import ErrorMeaning, Raised, Refusal

# A name for what it means, the types of the error, and what its message has. The first that fits is meant.
# (The function that is no array is not the one that should be a mesh.)
MEANINGS: tuple[tuple[str, str, str], ...] = (
    ("contracted", "ShardingTypeError", r"Contracting dimensions are sharded"),
    ("contracted", "ShardingTypeError", r"contracting dimensions to have consistent sharding"),
    ("two dimensions", "ShardingTypeError", r"illegally sharded result"),
    ("other shardings", "ShardingTypeError", r"incompatible shardings for broadcasting|should have the same sharding"),
    ("indexing", "ShardingTypeError", r"\.at\[\.\.\.\]"),
    ("unreduced", "ShardingTypeError|NotImplementedError", r"unreduced"),
    ("along sharded", "ShardingTypeError|ValueError", r"slicing on sharded dims|sharded on the axis being"),
    ("along sharded", "ShardingTypeError|ValueError", r"unsharded over the axis|unsharded over the sorting"),
    ("along sharded", "ShardingTypeError|ValueError", r"0th dimension of all xs"),
    ("no mesh", "ValueError|RuntimeError", r"context mesh .*cannot be empty|not under a mesh context"),
    ("no mesh", "ValueError|RuntimeError", r"requires a non-empty mesh in context"),
    ("no in_specs", "TypeError", r"in_specs argument must be a pytree .* but it was `None`"),
    ("constraint", "ValueError|AssertionError", r"can only refer to Auto axes|acts as an assert"),
    ("no out_sharding", "TypeError", r"Missing required keyword argument: 'out_sharding'"),
    ("axis twice", "DuplicateSpecError|ValueError", r"has duplicate entries|map at most one positional dimension"),
    ("varying", "ValueError", r"inferred to be possibly varying over|can't be statically inferred"),
    ("varying", "ValueError", r"replicat\w+ over mesh ax|out_specs .*(is|are) (implicitly )?replicated"),
    ("matmul shapes", "TypeError|ValueError", r"dot_general requires contracting dimensions"),
    ("matmul shapes", "TypeError|ValueError", r"contracting dim\w* .*(shape|size)|matmul.*(mismatch|contract)"),
    ("matmul shapes", "TypeError|ValueError", r"Incompatible shapes for dot|dot_general(?!.*batch).*shape"),
    ("matmul batches", "ValueError", r"Incompatible (types|shapes) for matmul arguments"),
    ("vmap", "ValueError", r"vmap got inconsistent sizes"),
    ("not divisible", "ValueError|IndivisibleError", r"evenly divi|equal division|divisible by|not divisible"),
    ("not divisible", "ValueError|IndivisibleError", r"IndivisibleError"),
    ("broadcasting", "TypeError|ValueError", r"incompatible shapes for broadcasting|could not be broadcast"),
    ("broadcasting", "TypeError|ValueError", r"broadcast\w* .*incompatible"),
    ("None", "TypeError", r"incompatible function arguments[\s\S]*Invoked with types:.*NoneType"),
    ("no message", "AssertionError", r"^$"),
    ("no such axis", "NameError|ValueError|KeyError", r"unbound axis name|axis name '?\w+'? |Resource axis"),
    ("no such axis", "NameError|ValueError|KeyError", r"not found in mesh"),
    ("same along axis", "ValueError", r"psum(_scatter)? can only accept axis_name"),
    ("pcast", "ValueError", r"pcast can only accept|Unsupported pcast"),
    ("spec too long", "ValueError", r"an in_specs entry which is too long|for values of rank at least"),
    ("out_spec too long", "ValueError", r"out_specs.*(too long|rank)|which is too long|has length \d+ .*rank"),
    ("other devices", "ValueError", r"incompatible devices"),
    ("deleted", "RuntimeError", r"Array has been deleted|deleted or donated"),
    ("other memory", "ValueError", r"memory_space of all inputs"),
    ("not manual", "ValueError", r"must refer to an axis marked as manual"),
    ("device list", "ValueError", r"device_put device specification"),
    ("other tree", "ValueError", r"(in|out)_shardings (specification|has)|constraint shardings specification"),
    ("other tree", "ValueError", r"pytree structure error"),
    ("carry shape", "TypeError", r"carry output must have equal types[\s\S]*the (shapes|dtypes) do not match"),
    ("carry varies", "TypeError", r"carry input and carry output must have equal types"),
    ("branches", "TypeError", r"branches must have equal output types"),
    ("traced key", "TypeError", r"unhashable type: '\w*Tracer'"),
    ("unhashable", "TypeError", r"unhashable type"),
    ("no such name", "KeyError", r"^(?!None)[\w'\"]"),
    ("no such key", "KeyError", r""),
    ("out of range", "IndexError", r"index out of range|out of bounds"),
    ("reshape", "ValueError|TypeError", r"cannot reshape"),
    ("not as many", "ValueError", r"must match shard count|to equal x\.shape\[split_axis\]"),
    ("mask", "NonConcreteBooleanIndexError", r""),
    ("function", "TypeError", r"^(?!shard_map requires)[\s\S]*type '?<class '\S*[fF]unction'>"),
    ("mesh traced", "TypeError", r"type <class '\S*mesh\.\w*Mesh'>"),
    ("no array", "TypeError", r"is not a valid JAX (array )?type|Error interpreting argument to .* as an? "),
    ("no array", "TypeError", r"Cannot determine dtype of|as an abstract array"),
    ("no array", "TypeError", r"requires ndarray(, scalar, or None| or scalar) arguments, got (?!<class 'numpy)"),
    ("traced condition", "TracerBoolConversionError", r""),
    ("traced number", "TracerIntegerConversionError|TracerArrayConversionError|ConcretizationTypeError", r""),
    ("ppermute", "ValueError", r"ppermute sources and destinations must be unique"),
    ("einsum", "ValueError", r"^Size of label|^Einstein sum subscript .* correct number of indices"),
    (
        "arguments of JAX",
        "TypeError",
        r"^(shard_map|all_\w+|psum\w*|p(permute|mean|max|min)|device_put|make_mesh)\(\) (got|missing|takes)",
    ),
    ("arguments", "TypeError", r"unexpected keyword argument|missing \d+ required|takes \d+ positional"),
    ("NamedSharding", "AttributeError|TypeError", r"has no attribute '?(partitions|_internal_device_list)"),
    ("NamedSharding", "AttributeError|TypeError", r"'P(artitionSpec)?' object has no attribute 'size'"),
    ("NamedSharding", "AttributeError|TypeError", r"__init__\(self, mesh: object, spec: "),
    ("negative dimension", "ValueError", r"op attribute '\w*dimension\w*' .*non-negative"),
    ("NumPy", "AttributeError", r"numpy\.ndarray' object .*'(at|sharding|addressable_shards|block_until_ready)'"),
)


def stopped(problem: Problem) -> Finding:
    """Why there is no answer: what was refused, or the error, as Python says it."""
    if problem.kind == "refused" or not problem.error:
        return problem.refusal or Refusal("unknown")
    given = re.search(r"^Invoked with types: (.*)", problem.message, re.MULTILINE)
    return Raised(problem.error, _without_places(_first(problem.message))[:600], given[1] if given else "")


def meaning(problem: Problem) -> ErrorMeaning | None:
    """What a newcomer should know of an error."""
    if not problem.message and not problem.operands:
        return None  # JAX was given nothing: it is the student's own
    for name, error, pattern in MEANINGS:
        if re.fullmatch(f".*({error})", problem.error) and re.search(pattern, problem.message, re.IGNORECASE):
            return ErrorMeaning(name)
    return None


# The line after a heading: which spec is meant, which part of what a loop carries, which operation is refused.
WHICH = (
    r"\s*(\* )?((in|out)_specs\S* (is|refers) |(the passed )?args|the input carry|'stablehlo\.\w+' op )"
    r"|\s*shard_map (in|out)_specs\S*$|\s*(\* )?(one|some|most) ax[ei]s .*had size"
)


def _first(message: str) -> str:
    """A message's first line; if that is a heading, also the line that says which part of all it means."""
    first, *rest = message.strip().splitlines() or [""]
    which = next((line for line in rest if re.match(WHICH, line, re.IGNORECASE)), "")
    if not first.endswith((":", "at key path")) or not which:
        return first
    return f"{first} {which.strip().removeprefix('* ').rstrip(',;')}"


def _without_places(message: str) -> str:
    """A message of JAX's without the places of files, which are the grader's own or mean nothing to a student."""
    without = re.sub(r"(for jit )?(the )?function program at \S+?\.py:\d+", "your function", message)
    without = re.sub(r" *This error occurs at source: .*", "", without)  # a card shows the line itself
    return re.sub(r",? (defined )?at (\S*/\S+?:\d+(:\d+)?|0x[0-9a-f]+)", "", without)
