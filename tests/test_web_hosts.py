"""The service answers to its own names and to no other, and knows where it can be reached."""

import pytest
from builders import app_over, write_data
from flask import Flask
from flask.testing import FlaskClient
from hostile import OTHER_HOSTS
from hypothesis import given
from hypothesis import strategies as st

from store.web import hosts

LIST = "/api/v1/categories.json"
NAMES = frozenset({"localhost", "rankings.example"})


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """A reader of a service whose operator trusts more hosts, in site.json and by HOSTS."""
    trusted = ["Inner.example:8443", "bücher.example", "https://www.example./"]
    directory = write_data(tmp_path_factory.mktemp("hosts") / "data", hosts=trusted)
    odd = ("http://[broken", "http://", "//", "http://" + "ü" * 300)
    return app_over(directory, hosts=("extra.example", *odd)).test_client()


@pytest.mark.parametrize(
    "host",
    [
        "rankings.example", "rankings.example:443", "RANKINGS.Example", "rankings.example.",
        "rankings.example.:8000", "rankings.example:", "localhost", "localhost:5000", "LOCALHOST",
        "127.0.0.1", "127.0.0.1:5000", "192.0.2.7:8000", "[::1]", "[::1]:5000", "[2001:DB8::7]:80",
        "inner.example", "inner.example:9", "xn--bcher-kva.example", "www.example", "extra.example",
    ],
)  # fmt: skip
def test_own_names_and_ip_literals_are_answered(client: FlaskClient, host: str) -> None:
    """The base URL's host, localhost, the operator's own and any IP literal, whatever the port."""
    assert client.get(LIST, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_any_other_host_is_refused(client: FlaskClient, host: str) -> None:
    """Another name, or what is no host at all, is a 400 with a sentence for the operator."""
    answer = client.get(LIST, environ_overrides={"HTTP_HOST": host.encode().decode("latin-1")})
    assert answer.status_code == 400
    assert answer.mimetype == "application/problem+json"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "HOSTS" in answer.get_json()["detail"]


@pytest.mark.parametrize("host", ["evil.example", "", "a..b", "[", "\u00ff", "x" * 9000])
def test_health_is_answered_to_any_host(client: FlaskClient, host: str) -> None:
    """A load balancer asks by whatever name it has."""
    assert client.get("/healthz", environ_overrides={"HTTP_HOST": host}).status_code == 200


@pytest.mark.parametrize("path", ["/nope", "/api/v1/best/nope.json", "//healthz", "/healthz/"])
def test_the_host_is_looked_at_first(client: FlaskClient, path: str) -> None:
    """Another host learns nothing, not even what there is not."""
    answer = client.get("/", environ_overrides={"HTTP_HOST": "evil.example", "PATH_INFO": path})
    assert answer.status_code in (400, 404)
    assert path == "//healthz" or answer.status_code == 400


def test_a_request_without_a_host_must_be_of_http_1_0() -> None:
    """RFC 9112, section 3.2: one of HTTP/1.1 without a Host is malformed."""
    assert hosts.is_trusted({"SERVER_PROTOCOL": "HTTP/1.0"}, NAMES)
    assert not hosts.is_trusted({"SERVER_PROTOCOL": "HTTP/1.1"}, NAMES)


@given(st.text(st.characters(max_codepoint=255), max_size=30))
def test_no_host_is_trusted_by_accident(host: str) -> None:
    """Whatever is trusted is, port and final dot aside, one of the names or an IP literal."""
    if hosts.is_trusted({"HTTP_HOST": host}, NAMES):
        name = hosts.host_name(host)
        assert name in NAMES or hosts.is_ip(name)
        assert host.lower().lstrip("[").startswith(name)


@pytest.mark.parametrize("upgrade", ["websocket", "h2c", "rubbish"])
def test_an_offer_to_upgrade_is_passed_over(client: FlaskClient, upgrade: str) -> None:
    """A server may ignore Upgrade (RFC 9110, section 7.8); the answer is the ordinary one."""
    headers = {"Connection": "Upgrade", "Upgrade": upgrade}
    assert client.get(LIST, headers=headers).status_code == 200


def test_addresses_never_come_from_the_request(small: Flask) -> None:
    """Whatever Host or forwarding header is sent, the bytes are the same."""
    client = small.test_client()
    address = "/api/v1/best/crm-software.json"
    plain = client.get(address)
    for headers in (
        {"Host": "127.0.0.1:9"},
        {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "gopher"},
        {"Forwarded": "host=evil.example"},
    ):
        answer = client.get(address, headers=headers)
        assert (answer.data, answer.headers["Link"]) == (plain.data, plain.headers["Link"])


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:5000"), ("0.0.0.0", "http://127.0.0.1:5000"),  # noqa: S104
        ("::", "http://127.0.0.1:5000"), ("", "http://127.0.0.1:5000"),
        ("::1", "http://[::1]:5000"), ("[::1]", "http://[::1]:5000"),
        ("box.example", "http://box.example:5000"),
    ],
)  # fmt: skip
def test_the_address_of_a_listening_server(host: str, address: str) -> None:
    """Every interface is reached at 127.0.0.1 from this machine."""
    assert hosts.address(host, 5000) == address
