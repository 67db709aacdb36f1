"""§ 10: five trainers that run and learn, each with one wrong line, and the marks that these leave."""

from __future__ import annotations

from grader.exercises import TableExercise
from grader.lessons.shared import believed

FAULTS = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}
MEANS, BIAS, FOUR, NORM, DECAY = FAULTS

SEEN = "Of trainer {} `fingerprint` says: {}. Is it so with this fault?"
MARKS = {
    "A": "the first loss is off, and the gradients by another factor each",
    "B": "loss and gradients are right, and of the update only the bias's part is off",
    "C": "the first loss is off, and so are the gradients",
    "D": "loss and gradients are right, and the update is shorter in all parameters",
    "E": "the first loss is right, and all gradients are off by one factor",
}

five_broken_trainers = TableExercise(
    "five_broken_trainers",
    points=5,
    reference=lambda row: FAULTS[row],
    options={letter: SEEN.format(letter, mark) for letter, mark in MARKS.items()},
)
five_broken_trainers.rows(FAULTS)


@five_broken_trainers.mistake
def both_first_losses_confused(row):
    """Two trainers have a wrong first loss. In one of them it would be right if all devices had as many real rows. In
    the other it is wrong for every batch, because a number is added up that should be added once. Which is which?
    (Lesson 12 has the means, lesson 13 where a bias is added.)"""
    return {MEANS: "C", BIAS: "A"}.get(row)


@five_broken_trainers.mistake
def large_gradients_from_the_means(row):
    """Look at the gradients of that trainer once more: are they off by *one* factor, in every parameter? A mean of
    means weighs rows unequally, and does something else to each. (Lesson 11 has what comes back through a psum.)"""
    return {MEANS: "E", FOUR: "A"}.get(row)


@five_broken_trainers.mistake
def both_steps_confused(row):
    """Two trainers have right losses and right gradients, and another update. Is it shorter in all parameters, or is
    only one of them concerned? The norm is one number for all. (Lesson 12 has it.)"""
    return {NORM: "B", DECAY: "D"}.get(row)


@five_broken_trainers.mistake
def clipped_because_large(row):
    """A norm that is too large makes the *update* too short; the gradients themselves stay as they are. Which
    trainer's gradients are off already? (Lesson 11 has why, lesson 12 the norm.)"""
    return {NORM: "E", FOUR: "D"}.get(row)


@five_broken_trainers.mistake
def decay_seen_in_the_loss(row):
    """Weight decay is no part of this loss: the first loss knows nothing of it. Which trainer's bias is right before
    the step, and wrong after it? (In the trainer it is the line of `new`. Lesson 12 asks what a step with weight decay
    sends.)"""
    return believed(row, "C", DECAY) or believed(row, "B", BIAS)
