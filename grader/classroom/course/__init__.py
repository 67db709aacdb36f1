"""solutions/ becomes course/: building, marking, coverage, a demo class."""
