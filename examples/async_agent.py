"""An agent that speaks while its text is being written, and stops at once when it is interrupted."""

import asyncio
import os

from tutti.client import AsyncClient

LONG = "Let me explain this at some length, because there is a great deal to be said about it. " * 5
SHORT = "Of course. Here is the short version."


async def main() -> None:
    async with AsyncClient(os.environ.get("TUTTI_URL", "http://127.0.0.1:8880")) as client:
        # Fetch in advance what will be needed.
        ready = asyncio.create_task(client.prefetch(["One moment, please.", "Goodbye!"]))
        async with client.live(voice="am_michael") as live:
            await live.send(LONG)
            await live.finish()
            async for piece in live:
                if piece.words:
                    print("agent:", *(word.word for word in piece.words[:6]), "…")
                    break  # the listener interrupts
            await live.cancel()
            await live.send(SHORT)
            await live.finish()
            n_bytes = 0
            async for piece in live:
                n_bytes += len(piece.audio)
            print(f"agent: {SHORT} ({n_bytes / 48_000:.1f} s)")
        await ready
        goodbye = await client.speak("Goodbye!")
        print("agent: Goodbye!", "(from the cache)" if goodbye.call and goodbye.call.cached else "")


asyncio.run(main())
