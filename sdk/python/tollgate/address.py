"""The address of the client, behind proxies that are trusted to say it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Iterable, List, Optional, Sequence, Union


class TrustedProxies:
    """Networks of proxies whose `X-Forwarded-For` counts."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks = [_network(text) for text in networks]

    def client(self, peer: Optional[str], forwarded: Sequence[str]) -> Optional[str]:
        """The address nearest to this server that is no trusted proxy.

        Every proxy appends the address of its own peer, so that only the right end is not the client's. What is not an
        address ends the walk at the proxy that wrote it. `peer` is None for a Unix domain socket, whose permissions
        say who may connect.
        """
        client = None if peer is None else _address(peer)
        if client is None and peer is not None:
            return None
        entries = [entry.strip(" \t") for field in forwarded for entry in field.split(",")]
        for entry in reversed(entries):
            address = _address(entry) if self._trusts(client) else None
            if address is None:
                break
            client = address
        return None if client is None else str(_shortest(client))

    def _trusts(self, address: Optional[IPv6Address]) -> bool:
        if address is None:
            return bool(self._networks)
        return any(address in network for network in self._networks)


def _address(text: str) -> Optional[IPv6Address]:
    """An address in IPv6 space, without its zone; None if the text is anything else."""
    text = text.split("%", 1)[0] if ":" in text else text
    if any(len(part) > 1 and part.startswith("0") for part in text.split(".")) and "." in text and ":" not in text:
        return None  # octal to some readers
    try:
        return _wide(ip_address(text))
    except ValueError:
        return None


def _wide(address: Union[IPv4Address, IPv6Address]) -> IPv6Address:
    return address if isinstance(address, IPv6Address) else IPv6Address(f"::ffff:{address}")


def _shortest(address: IPv6Address) -> Union[IPv4Address, IPv6Address]:
    return address if address.ipv4_mapped is None else address.ipv4_mapped


def _network(text: str) -> IPv6Network:
    network = ip_network(text.strip())
    offset = 96 if network.version == 4 else 0
    return IPv6Network((int(_wide(network.network_address)), network.prefixlen + offset))


def comma_separated(text: str) -> List[str]:
    """The parts of a list, without empty ones."""
    return [part.strip() for part in text.split(",") if part.strip()]
