"""What went wrong with an answer: from the facts of a wrong answer to findings, the most specific first."""
