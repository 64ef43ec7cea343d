"""Who asks which API server: from the pod's service account or from a kubeconfig."""

import base64
import datetime
import ipaddress
import ssl

import pytest
import yaml
from kube_server import TOKEN, KubeServer

from comity.engines.kubernetes import api as kubernetes
from comity.engines.kubernetes.api import Api, Cluster, find_cluster, read_kubeconfig
from comity.errors import CallerError, UnavailableError


def kubeconfig(path, user, cluster=None):
    path.write_text(yaml.safe_dump({
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://k:6443"} | (cluster or {})}],
        "users": [{"name": "u", "user": user}],
    }))  # fmt: skip
    return path


def test_a_pod_uses_its_service_account_and_reads_its_token_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(kubernetes, "SERVICE_ACCOUNT", tmp_path)
    for name, text in (("token", "one\n"), ("namespace", "shop"), ("ca.crt", "PEM")):
        (tmp_path / name).write_text(text)
    cluster = find_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"})
    assert (cluster.server, cluster.namespace, cluster.ca_data) == ("https://10.0.0.1:6443", "shop", "PEM")
    assert cluster.authorization() == {"Authorization": "Bearer one"}
    (tmp_path / "token").write_text("two")
    assert cluster.authorization() == {"Authorization": "Bearer two"}
    assert find_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1"}).server == "https://[fd00::1]:443"


def test_a_kubeconfig_gives_server_token_and_certificates(tmp_path):
    (tmp_path / "ca.pem").write_text("CA")
    data = {"client-certificate-data": base64.b64encode(b"CERT").decode(), "client-key-data": base64.b64encode(b"KEY").decode()}
    path = kubeconfig(tmp_path / "config", {"token": "t"} | data, {"certificate-authority": "ca.pem"})
    cluster = find_cluster({"KUBECONFIG": str(path)})
    expected = {"server": "https://k:6443", "token": "t", "ca_data": "CA", "certificate": "CERT", "key": "KEY"}
    assert cluster == Cluster(**expected)


def test_a_token_file_is_found_beside_the_kubeconfig(tmp_path):
    (tmp_path / "t").write_text("secret\n")
    cluster = read_kubeconfig(kubeconfig(tmp_path / "config", {"tokenFile": "t"}))
    assert cluster.authorization() == {"Authorization": "Bearer secret"}
    assert Cluster(server="http://x").authorization() == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("current-context: x", "kubeconfig"),
        ("[", "kubeconfig"),
        ("{current-context: a, contexts: [{name: b, context: {}}]}", "kubeconfig"),
    ],
)
def test_a_kubeconfig_that_names_no_cluster_is_refused(tmp_path, text, told):
    (tmp_path / "config").write_text(text)
    with pytest.raises(CallerError, match=told):
        read_kubeconfig(tmp_path / "config")


def test_what_cannot_be_used_is_said(tmp_path):
    with pytest.raises(CallerError, match="does not exist"):
        find_cluster({"KUBECONFIG": str(tmp_path / "none")})
    with pytest.raises(CallerError, match="logs in with a program"):
        read_kubeconfig(kubeconfig(tmp_path / "config", {"exec": {"command": "x"}}))
    with pytest.raises(CallerError, match="client-certificate"):
        read_kubeconfig(kubeconfig(tmp_path / "config", {"client-certificate": "nowhere.pem"}))
    with pytest.raises(CallerError, match="no address"):
        Api(Cluster(server="k:6443"))
    with pytest.raises(CallerError, match="certificates"):
        Api(Cluster(server="https://k", ca_data="no certificate"))


def test_verification_is_only_switched_off_where_the_kubeconfig_says_so():
    assert Api(Cluster(server="https://k"))._tls.check_hostname
    assert not Api(Cluster(server="https://k", is_unverified=True))._tls.check_hostname


@pytest.fixture
def certificate():
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kube")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return made.public_bytes(serialization.Encoding.PEM).decode(), pem.decode()


def test_only_a_server_its_authority_vouches_for_is_spoken_to_and_it_may_ask_for_a_certificate(certificate, tmp_path):
    public, key = certificate
    (tmp_path / "both.pem").write_text(public + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    context.load_verify_locations(cadata=public)
    context.verify_mode = ssl.CERT_OPTIONAL
    server = KubeServer(context)
    path = f"{server.prefix}shop/{server.plural}"

    def ask(**more):
        return Api(Cluster(server=server.url, token=TOKEN, **more)).request("GET", path, fieldSelector="metadata.name=x").status

    assert ask(ca_data=public) == 200
    assert ask(is_unverified=True) == 200
    with pytest.raises(UnavailableError, match="certificate"):
        ask()
    context.verify_mode = ssl.CERT_REQUIRED
    with pytest.raises(UnavailableError):
        ask(ca_data=public)
    assert ask(ca_data=public, certificate=public, key=key) == 200
    server.close()
