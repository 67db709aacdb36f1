"""Pictures that only this lesson draws, one file a kind of picture; students find them in `grader.draw`."""
