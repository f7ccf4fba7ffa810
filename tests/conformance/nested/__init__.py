"""Models in which the rewrites that the tests of passes assert feed each other."""
