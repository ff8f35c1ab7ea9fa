"""The distance of two sounds, for the tests of the models."""

from tutti.verify.mel import distance_db

__all__ = ["distance_db"]
