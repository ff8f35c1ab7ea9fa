"""The connections of the server: what each may cost, and which process answers it.

`protocol.py` and `websocket.py` limit connections, `placement.py` says which process answers. Before a fast device some
processes speak HTTP, so that the server's process has its core for the engine (`pool.py` starts them, `child_main.py`
is theirs): each listens on the server's port and answers requests for speech, with streams that come from the engine
over a link (`remote_engine.py`, `stream_server.py`). Other connections go to the server's process, with what was read.
"""
