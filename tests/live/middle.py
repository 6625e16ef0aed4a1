"""What stands in the middle, as scenarios see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum

from network import Network


class Service(Enum):
    """What the middle is asked to do."""

    #: Firewall and NAT between 192.168.77.0/24 and the outside; IPv6 routed.
    NAT = "nat"
    #: Connections to 203.0.113.100:80 go to one of three hosts inside.
    BALANCER = "lb"
    #: Routed both ways, nothing translated.
    ROUTER = "router"
    #: Frames pass as they are.
    WIRE = "wire"
    #: Likewise, by a bridge that learns who is where.
    BRIDGE = "bridge"

    @property
    def has_one_link(self) -> bool:
        """Whether both sides are one network."""
        return self in (Service.WIRE, Service.BRIDGE)


@dataclass(frozen=True)
class Ground:
    """How a middle is set up."""

    service: Service
    #: Kinds of the devices `lan` and `wan`; empty for a middle that has none.
    devices: tuple[str, str] | None = None
    lanes: int = 1
    #: Lanes that share a queue.
    sharing: int = 1
    #: Whether their packets leave in the order of claims.
    ordered: bool = False

    def __str__(self) -> str:
        if self.devices is None:
            return self.service.value
        kinds = self.devices[0] if len(set(self.devices)) == 1 else " > ".join(self.devices)
        shared = f" of {self.lanes // self.sharing} queue" if self.sharing > 1 else ""
        order = ", in order" if self.ordered else ""
        return f"{self.service.value}, {kinds}, {self.lanes} lane{'s' if self.lanes > 1 else ''}{shared}{order}"


class Middle(ABC):
    """Forwards between the interfaces `lan` and `wan` of the middle namespace of a network."""

    #: Whether it is a process that can be killed and has tables to rewrite.
    is_process: bool

    def __init__(self, network: Network, ground: Ground) -> None:
        self.network = network
        self.ground = ground

    @abstractmethod
    def start(self) -> None:
        """Starts it; it may take a moment until packets pass."""

    @abstractmethod
    def stop(self) -> dict[str, object]:
        """Stops it in good order, checks that it leaves nothing behind, and returns its summary, if it has one.

        Raises `Failure` if anything was wrong."""

    @abstractmethod
    def crash(self) -> None:
        """Ends it without a chance to clean up; all its state is lost."""

    @abstractmethod
    def rewrite_table(self, device: str, seed: int) -> None:
        """Changes which queue each bucket leads to."""

    @abstractmethod
    def diagnosis(self) -> str:
        """What it said last, for failures."""
