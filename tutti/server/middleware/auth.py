"""API keys: kept only as hashes, compared in constant time."""

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest

from pydantic import SecretStr

from tutti.errors import InvalidInput
from tutti.server.errors import InvalidKey

PREFIX = "sha256:"


class Keys:
    """Who may ask for speech. With no key set, anyone; then whatever a client sends for one is fine."""

    def __init__(self, keys: Iterable[SecretStr]) -> None:
        self._hashes = [_hash(key.get_secret_value()) for key in keys]

    def caller(self, authorization: str) -> str:
        """A name for whoever sent this header, the same for the same key; "" where no keys are set."""
        if not self._hashes:
            return ""
        scheme, _, key = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise InvalidKey("this server needs an API key; send it as: Authorization: Bearer <key>")
        given = sha256(key.strip().encode("utf-8", "surrogateescape")).hexdigest()
        # Every hash is compared, so that the time tells nothing.
        if sum(compare_digest(given, known) for known in self._hashes) == 0:
            raise InvalidKey("this API key is not one of this server's")
        return given[:12]


def _hash(key: str) -> str:
    if not key.startswith(PREFIX):
        return sha256(key.encode()).hexdigest()
    digest = key.removeprefix(PREFIX).lower()
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise InvalidInput("api_keys: write sha256: and 64 hexadecimal digits, or the key itself", param="api_keys")
    return digest
