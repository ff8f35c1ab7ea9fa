"""API keys, stored as hashes and compared in constant time."""

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest

from pydantic import SecretStr

from tutti.additions import key_id
from tutti.errors import InvalidInput
from tutti.server.errors import InvalidKey

PREFIX = "sha256:"


class ApiKeys:
    """The keys of this server. If there are none, every request is accepted with any key or none."""

    def __init__(self, keys: Iterable[SecretStr]) -> None:
        self._hashes = [_hash(key.get_secret_value()) for key in keys]

    @property
    def needed(self) -> bool:
        """Whether callers need a key."""
        return bool(self._hashes)

    def known_caller(self, key: str) -> str:
        """Return an id for a key; "" if it is unknown, or the server has no keys."""
        try:
            return self.caller(key) if key else ""
        except InvalidKey:
            return ""

    def caller(self, key: str) -> str:
        """Return an id for a key; "" if the server has no keys. Raise InvalidKey if it is unknown."""
        if not self._hashes:
            return ""
        if not key:
            raise InvalidKey("this server needs an API key; send it as: Authorization: Bearer <key>")
        digest = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        # Compare every hash, so that the time reveals nothing.
        if sum(compare_digest(digest, key_hash) for key_hash in self._hashes) == 0:
            raise InvalidKey("unknown API key")
        return key_id(key)


def _hash(key: str) -> str:
    if not key.startswith(PREFIX):
        return sha256(key.encode()).hexdigest()
    digest = key.removeprefix(PREFIX).lower()
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise InvalidInput("api_keys: write sha256: and 64 hexadecimal digits, or the key itself", param="api_keys")
    return digest
