"""External engines are checked before use, and no error contains a password."""

import socket
from dataclasses import replace

import pytest

from stack.errors import StackError
from stack.options import read_options
from stack.ports import find_free_ports
from stack.programs import kafka_environment
from stack.startup_phases import check_external_database, check_external_kafka
from tests.engines import TestEngines


def test_reachable_engines_are_accepted(engines: TestEngines) -> None:
    """A database that responds and a broker that accepts connections are accepted."""
    check_external_database(engines.database_url)
    check_external_kafka(engines.kafka_bootstrap_servers)


def test_error_of_unreachable_database_hides_the_password() -> None:
    """Host and port are named, the password is not."""
    (port,) = find_free_ports(1)
    with pytest.raises(StackError) as caught:
        check_external_database(f"postgresql://mizan:hunter2@127.0.0.1:{port}/mizan")
    assert f"127.0.0.1:{port}/mizan" in caught.value.problem
    assert "hunter2" not in str(caught.value)


def test_error_names_all_servers_of_a_database_with_several() -> None:
    first, second = find_free_ports(2)
    with pytest.raises(StackError) as caught:
        check_external_database(
            f"postgresql://mizan:hunter2@127.0.0.1:{first},127.0.0.1:{second}/mizan?target_session_attrs=read-write"
        )
    assert f"(127.0.0.1:{first},127.0.0.1:{second}/mizan)" in caught.value.problem
    assert "hunter2" not in str(caught.value)


def test_error_of_wrong_password_hides_the_password(engines: TestEngines) -> None:
    """The error of the server is passed on, without the password."""
    url = engines.database_url.replace("://mizan:", "://mizan:hunter2")
    with pytest.raises(StackError, match="password authentication failed") as caught:
        check_external_database(url)
    assert "hunter2" not in str(caught.value)


def test_error_of_invalid_address_hides_the_password() -> None:
    """An address that cannot be parsed is not quoted."""
    with pytest.raises(StackError) as caught:
        check_external_database("postgresql://mizan:hunter2@[::1/mizan")
    assert "hunter2" not in str(caught.value)


def test_one_reachable_broker_is_enough() -> None:
    """It is an error only if no server of the list responds."""
    dead, alive = find_free_ports(2)
    with socket.create_server(("127.0.0.1", alive)):
        check_external_kafka(f"127.0.0.1:{dead},127.0.0.1:{alive}")
    with pytest.raises(StackError, match=f"127.0.0.1:{dead}"):
        check_external_kafka(f"127.0.0.1:{dead}")


def test_members_of_consumer_groups_have_a_name_only_in_an_embedded_kafka() -> None:
    """An external one may serve other stacks. Of two members with one name, Kafka shuts out the first."""
    options = replace(read_options(), kafka_bootstrap_servers=None)
    embedded = kafka_environment(options, "127.0.0.1:1", None, "webhooks")
    assert embedded["KAFKA_CLIENT_GROUP_INSTANCE_ID"] == "webhooks"
    options = replace(options, kafka_bootstrap_servers="127.0.0.1:1")
    assert "KAFKA_CLIENT_GROUP_INSTANCE_ID" not in kafka_environment(options, "127.0.0.1:1", None, "webhooks")
