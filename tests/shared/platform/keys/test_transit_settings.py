"""The settings of a KMS."""

import pytest

from shared.platform.settings import SettingsError, read_settings


@pytest.mark.usefixtures("plain_settings")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRANSIT_URL", "http://vault.internal:8200"),
        ("TRANSIT_URL", "http://10.0.0.7:8200"),
        ("TRANSIT_URL", "ftp://127.0.0.1"),
        ("TRANSIT_URL", "https://user:password@vault.internal"),
        ("TRANSIT_URL", "https://vault.internal/?token=x"),
        ("TRANSIT_URL", ""),
        ("TRANSIT_URL", None),
        ("TRANSIT_TOKEN_FILE", ""),
        ("TRANSIT_TOKEN_FILE", None),
        ("TRANSIT_MOUNT", "../sys"),
        ("TRANSIT_KEY_PREFIX", "mizan/../"),
        ("TRANSIT_TIMEOUT", "0"),
        ("TRANSIT_CACHE_SECONDS", "1000000"),
        ("TRANSIT_CA_FILE", "/nowhere.pem"),
        ("KEY_PROVIDER", "hsm"),
    ],
)
def test_wrong_settings_of_the_kms_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str | None
) -> None:
    """In every environment: without TLS, tokens and data keys could be read on the way."""
    good = {
        "KEY_PROVIDER": "transit",
        "TRANSIT_URL": "https://vault.internal",
        "TRANSIT_TOKEN_FILE": "/run/t",
    }
    for variable, text in good.items():
        monkeypatch.setenv(variable, text)
    assert read_settings().transit is not None
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {name}


@pytest.mark.usefixtures("plain_settings")
@pytest.mark.parametrize("url", ["http://127.0.0.1:8200", "http://localhost:8200/", "http://[::1]:8200"])
def test_kms_on_this_machine_needs_no_tls(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("KEY_PROVIDER", "transit")
    monkeypatch.setenv("TRANSIT_URL", url)
    monkeypatch.setenv("TRANSIT_TOKEN_FILE", "/run/token")
    transit = read_settings().transit
    assert transit is not None
    assert (transit.url, transit.encrypts) == (url.rstrip("/"), True)
    monkeypatch.setenv("KEY_PROVIDER", "local")
    transit = read_settings().transit
    assert transit is not None
    assert not transit.encrypts
