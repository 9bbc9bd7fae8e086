"""Valid and invalid certificates for receivers, from a certificate authority of the test."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_YEAR = timedelta(days=365)


class Authority:
    """A certificate authority. `ca_file` has its certificate. By default it issues for 127.0.0.1 and shop.example."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("Authority of a test")
        certificate = _certificate(self._name, self._key, self._name, self._key, is_authority=True)
        self.ca_file = directory / "authority.pem"
        self.ca_file.write_bytes(certificate)

    def receiver(self, *hosts: str, is_expired: bool = False) -> ssl.SSLContext:
        """Return the TLS context of a receiver with a certificate of this authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = hosts or ("127.0.0.1", "shop.example")
        certificate = _certificate(
            _named(names[0]), key, self._name, self._key, names=names, is_expired=is_expired
        )
        return self._context(key, certificate)

    def self_signed_receiver(self) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _named("127.0.0.1")
        return self._context(key, _certificate(name, key, name, key, names=("127.0.0.1",)))

    def _context(self, key: ec.EllipticCurvePrivateKey, certificate: bytes) -> ssl.SSLContext:
        both = self._directory / "receiver.pem"
        both.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        return context


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    names: tuple[str, ...] = (),
    is_authority: bool = False,
    is_expired: bool = False,
) -> bytes:
    until = datetime.now(UTC) + (-timedelta(days=1) if is_expired else _YEAR)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - 2 * _YEAR)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        # Python 3.13 and newer verify certificates strictly, by RFC 5280.
        .add_extension(_usage(is_authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_alternative(n) for n in names]), critical=False
        )
    return builder.sign(issuer_key, SHA256()).public_bytes(Encoding.PEM)


def _usage(is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
