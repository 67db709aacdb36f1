"""What is asked, and what comes back: all that an author of an exercise needs."""

from grader.arrays.laid import Array, holds_arrays, values_of
from grader.arrays.numbers import ROUNDINGS
from grader.exercises.answers import Layout
from grader.exercises.case import Case, Draw
from grader.exercises.exercise import Exercise, Mistake
from grader.exercises.forms import (
    FunctionExercise,
    PodExercise,
    ProcessExercise,
    ProgramExercise,
    TableExercise,
    TimetableExercise,
)
from grader.exercises.limits import (
    Besides,
    ByCompiler,
    BytesSent,
    ChipFlops,
    EitherWay,
    Flops,
    InPlace,
    InTurns,
    ManualAlong,
    Meanwhile,
    Move,
    Moves,
    OneWay,
    PeakBytes,
    Roots,
    Steps,
    TakenInside,
    Turns,
    Without,
    Written,
)
from grader.exercises.verdict import Outcome
