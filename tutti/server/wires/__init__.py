"""The wires of other services: each file translates the messages of one into the calls of a speech session."""
