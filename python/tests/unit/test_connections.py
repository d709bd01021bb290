"""Which of too many connections is closed."""

from __future__ import annotations

import pytest

from lanner.connections import Bounds, Connections, owner_of


class Connection:
    """A connection that tells when it was closed."""

    def __init__(self) -> None:
        self.dropped = False

    def drop(self) -> None:
        """Note it."""
        self.dropped = True


def entered(connections: Connections, *addresses: str) -> list[Connection]:
    """Connections from these addresses, one after the other."""
    made = [Connection() for _ in addresses]
    for connection, address in zip(made, addresses, strict=True):
        connections.enter(connection, address)
    return made


def dropped(connections: list[Connection]) -> list[int]:
    return [index for index, connection in enumerate(connections) if connection.dropped]


def test_address_that_has_too_many_loses_its_own_oldest() -> None:
    connections = Connections(Bounds(most=10, of_address=2))
    made = entered(connections, "192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.2", "192.0.2.2")
    assert dropped(made) == [1, 2]
    assert len(connections) == 3


def test_oldest_of_all_makes_room_where_there_are_too_many() -> None:
    connections = Connections(Bounds(most=3, of_address=2))
    made = entered(connections, *(f"192.0.2.{number}" for number in range(5)))
    assert dropped(made) == [0, 1]


def test_who_is_worked_for_stays_and_waits_anew_afterwards() -> None:
    connections = Connections(Bounds(most=3, of_address=3))
    made = entered(connections, *["192.0.2.1"] * 3)
    connections.work(made[0])
    made += entered(connections, "192.0.2.1")
    assert dropped(made) == [1]
    connections.wait(made[0])
    made += entered(connections, "192.0.2.1", "192.0.2.1")
    assert dropped(made) == [1, 2, 3]


def test_newcomer_is_closed_where_all_others_are_worked_for() -> None:
    connections = Connections(Bounds(most=2, of_address=2))
    made = entered(connections, "192.0.2.1", "192.0.2.2")
    for connection in made:
        connections.work(connection)
    assert not connections.make_room()
    made += entered(connections, "192.0.2.3")
    assert dropped(made) == [2]


def test_place_of_who_left_is_free() -> None:
    connections = Connections(Bounds(most=2, of_address=1))
    for _ in range(5):
        (one,) = entered(connections, "192.0.2.1")
        connections.leave(one)
        connections.leave(one)
        connections.wait(one)
        assert not one.dropped
    assert len(connections) == 0
    assert not connections.make_room()


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::4", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_addresses_are_counted_by_who_has_them(address: str, owner: str) -> None:
    assert owner_of(address) == owner
