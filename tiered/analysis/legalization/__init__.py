"""Legalization: operators that a target refuses become operators that it takes."""
