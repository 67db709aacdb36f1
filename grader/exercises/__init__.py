"""What is asked, and what comes back: all that an author of an exercise needs."""

from grader.arrays.laid import Array, holds_arrays, values_of
from grader.arrays.numbers import ROUNDINGS
from grader.exercises.case import Case, Draw, Move
from grader.exercises.exercise import Exercise, Mistake
from grader.exercises.verdict import Outcome

__all__ = ["ROUNDINGS", "Array", "Case", "Draw", "Exercise", "Mistake", "Move", "Outcome", "holds_arrays", "values_of"]
