"""Write a long text to a file while it is being synthesised, without holding it in memory."""

import os

from tutti.client import Client

TEXT = """The lighthouse had been dark for eleven years. On the first night of spring somebody climbed its stairs,
wound the old clockwork, and lit the lamp. Nobody in the village slept. In the morning the door was locked again,
but far out on the grey water a small boat had turned its bow towards the land."""

with (
    Client(os.environ.get("TUTTI_URL", "http://127.0.0.1:8880")) as client,
    client.stream(TEXT, words=False, format="mp3") as pieces,
    open("lighthouse.mp3", "wb") as file,
):
    for piece in pieces:
        file.write(piece.audio)
    print(f"lighthouse.mp3: {file.tell()} bytes, the first after {1000 * (pieces.call.first_byte_s or 0):.0f} ms")
