"""Who is calling: the page and the host name that a browser used, and the address behind a proxy."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from starlette.types import Scope

from tutti.errors import InvalidInput, TuttiError
from tutti.settings import Settings

Network = IPv4Network | IPv6Network
# Nobody can register a name under these, nor one without a dot: no foreign page can take such a name for itself. They
# are reserved for local use, but for .lan, which home routers use and no registry offers.
PRIVATE_SUFFIXES = (".localhost", ".internal", ".local", ".home.arpa", ".lan")


class WrongOrigin(TuttiError):
    status, code = 403, "origin_not_allowed"


class WrongHost(TuttiError):
    status, code = 403, "host_not_allowed"


class OriginRules:
    """What the settings allow of Origin, Host and X-Forwarded-For. Raises InvalidInput for a wrong setting."""

    def __init__(self, settings: Settings) -> None:
        self._origins = settings.cors_origins
        self._hosts = tuple(host.lower() for host in settings.allowed_hosts)
        # A page that makes its own name point at a loopback address could otherwise read all that a server without
        # keys has. With keys it lacks the key; a server for a network may be called by any name.
        self._checks_host = bool(self._hosts) or (not settings.api_keys and is_loopback(settings.host))
        self._proxies = [_network(proxy) for proxy in settings.trusted_proxies]

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Raise unless the server may be called by this name."""
        host = host_name(headers.get("host", ""))
        if self._checks_host and not (is_private_name(host) or host in self._hosts or "*" in self._hosts):
            raise WrongHost(f"this server is not called {host[:100]!r}; add the name to TUTTI_ALLOWED_HOSTS")

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Raise unless a page of this origin may change something here. Programs send no origin."""
        origin = headers.get("origin")
        if origin is None or "*" in self._origins or origin in self._origins:
            return
        authority = origin.partition("://")[2]
        if authority != headers.get("host", "") and host_name(authority) not in self._hosts:
            raise WrongOrigin(f"pages of {origin[:100]} may not use this server; add it to TUTTI_CORS_ORIGINS")

    def client_address(self, scope: Scope, headers: Mapping[str, str]) -> str:
        """Return the client's address: of the connection, or from X-Forwarded-For if that comes from our proxy."""
        address = str((scope.get("client") or ("",))[0])
        for forwarded in reversed(headers.get("x-forwarded-for", "").split(",") if self._proxies else ()):
            if not self._is_proxy(address):
                break
            try:
                address = str(ip_address(forwarded.strip()))
            except ValueError:
                break
        return address

    def _is_proxy(self, address: str) -> bool:
        try:
            ip = ip_address(address)
        except ValueError:
            return False
        return any(ip in network for network in self._proxies)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address or name to listen on."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@lru_cache(64)  # nearly all clients use the same name
def is_private_name(host: str) -> bool:
    """Whether no foreign page can have this name: an address, a name without a dot, or one that nobody can register."""
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return "." not in host.rstrip(".") or host.rstrip(".").endswith(PRIVATE_SUFFIXES)
    return True


def host_name(authority: str) -> str:
    """Return the name without the port, in lower case: "[::1]:8880" is "[::1]"."""
    name, colon, port = authority.lower().rpartition(":")
    return name if colon and (port.isdecimal() or not port) else authority.lower()


def _network(proxy: str) -> Network:
    try:
        return ip_network(proxy, strict=False)
    except ValueError:
        raise InvalidInput(
            f"trusted_proxies: {proxy!r} is not an address or network, such as 10.0.0.1 or 10.0.0.0/8",
            param="trusted_proxies",
        ) from None
