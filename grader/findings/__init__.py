"""What is true of an answer, as data: one small class per kind. `grader.wording` has the sentences."""
