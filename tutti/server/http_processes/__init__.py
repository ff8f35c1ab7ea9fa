"""Processes that speak HTTP in front of the server's process, which then has its core for the engine.

Each listens on the server's port and answers the requests for speech; the streams come from the engine over a socket.
A connection that asks for anything else is handed to the server's process, with what was read from it.
"""
