from __future__ import annotations

import pytest

from partwise.engine.cluster_map import CLIENT, mapped, on_cluster


class Future:
    def __init__(self, made):
        self.made = made

    def result(self):
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


class Client:
    """A cluster of one thread that does at once what it is given, and counts what is on its way."""

    def __init__(self):
        self.sent = self.cancelled = 0

    def submit(self, function, *given, pure):
        assert pure is False
        self.sent += 1
        try:
            return Future(function(*(one.result() for one in given)))
        except Exception as error:
            return Future(error)

    def nthreads(self):
        return {"worker": 1}

    def cancel(self, futures):
        self.cancelled += len(futures)


def added(item, much, many):
    return item + much + sum(many)


def test_in_order_here_and_there():
    client = Client()
    here = list(mapped(added, range(5), 10, [1, 2]))
    with on_cluster(client):
        assert list(mapped(added, range(5), 10, [1, 2])) == here == [13, 14, 15, 16, 17]
    assert CLIENT.get() is None and client.sent == 5 + 2


def test_no_more_on_their_way_than_there_is_room_for():
    client, seen = Client(), []

    def items():
        for k in range(10):
            seen.append(k)
            yield k

    with on_cluster(client):
        first = next(iter(mapped(added, items(), 0, [0], ahead=2)))
    assert first == 0 and seen == [0, 1, 2]


def test_an_error_ends_it():
    client = Client()
    with on_cluster(client), pytest.raises(TypeError):
        list(mapped(added, [1, "two", 3], 1, [0]))
    assert client.cancelled == 1
