# SPDX-License-Identifier: Apache-2.0
"""Authorities, certificates and keys for tests, made by the openssl command in a folder."""

import datetime
import subprocess

DAYS = "2"
# What openssl's ca wants of an authority that keeps a list of what it issues and revokes.
AUTHORITY = """[ca]
default_ca = it
[it]
database = {name}.index
new_certs_dir = .
rand_serial = yes
default_md = sha256
default_crl_days = {days}
policy = any
unique_subject = no
[any]
commonName = supplied
"""


def new_key(kind):
    """kind: of openssl's -newkey, say "rsa:2048"; None = on P-256."""
    return ["-newkey", kind] if kind else ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]


def date(days):
    """So many days from now, as openssl's ca takes it."""
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")


class Pki:
    """NAME.pem and NAME.key in the folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, *words, stdin=""):
        done = subprocess.run(["openssl", *map(str, words)], cwd=self.folder, input=stdin, text=True,
                              capture_output=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def authority(self, name, key=None):
        self.run("req", "-x509", *new_key(key), "-nodes", "-days", DAYS, "-subj", f"/CN={name}",
                 "-keyout", f"{name}.key", "-out", f"{name}.pem", "-addext", "basicConstraints=critical,CA:TRUE")
        return name

    def leaf(self, name, authority, sans="IP:127.0.0.1", key=None, days=DAYS, subject=None):
        """sans: "" = none. subject: as openssl's -subj takes it; None = the name."""
        self._request(name, subject or f"/CN={name}", key)
        (self.folder / f"{name}.ext").write_text(f"subjectAltName={sans}\n")
        named = ["-extfile", f"{name}.ext"] if sans else []
        self.run("x509", "-req", "-days", days, "-in", f"{name}.csr", "-CA", f"{authority}.pem",
                 "-CAkey", f"{authority}.key", "-CAcreateserial", "-out", f"{name}.pem", *named)
        return name

    def issue(self, name, authority, sans="IP:127.0.0.1", usage=None, dates=(-1, 2)):
        """As leaf(), for a use of openssl's extendedKeyUsage and from one day to another, counted from now."""
        self._request(name, f"/CN={name}")
        text = f"subjectAltName={sans}\n" + (f"extendedKeyUsage={usage}\n" if usage else "")
        (self.folder / f"{name}.ext").write_text(text)
        self._ca(authority, "-in", f"{name}.csr", "-out", f"{name}.pem", "-extfile", f"{name}.ext",
                 "-startdate", date(dates[0]), "-enddate", date(dates[1]))
        return name

    def crl(self, authority, *revoked):
        """The authority's CRL in PEM, with these certificates and those of the calls before."""
        for name in revoked:
            self._ca(authority, "-revoke", f"{name}.pem")
        return self._ca(authority, "-gencrl")

    def _request(self, name, subject, key=None):
        self.run("req", *new_key(key), "-nodes", "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")

    def _ca(self, authority, *words):
        config = self.folder / f"{authority}.cnf"
        if not config.exists():
            config.write_text(AUTHORITY.format(name=authority, days=DAYS))
            (self.folder / f"{authority}.index").touch()
        return self.run("ca", "-batch", "-notext", "-config", config, "-cert", f"{authority}.pem",
                        "-keyfile", f"{authority}.key", *words)

    def pem(self, name):
        return (self.folder / f"{name}.pem").read_text()

    def key(self, name):
        return (self.folder / f"{name}.key").read_text()


def replace(path, text):
    """A new file in place of the old one, at once."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.rename(path)
