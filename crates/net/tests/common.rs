//! A server and a client on loopback.

use std::net::TcpStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use lanner_net::{
    Address, ClientTls, Identity, Limits, Listener, NetError, ServerTls, StateDirectory, TcpChannel, Trust,
};
use lanner_wire::Kind;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;

pub const PING: Kind = Kind(7);
pub const PONG: Kind = Kind(8);

/// Checks cases that spend their time waiting beside each other.
pub fn at_once<T: Send, const CASES: usize>(cases: [T; CASES], check: impl Fn(T) + Sync) {
    thread::scope(|scope| {
        for case in cases {
            scope.spawn(|| check(case));
        }
    });
}

pub fn listener() -> (Listener, Address) {
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.address().to_string().parse().unwrap();
    (listener, address)
}

pub fn accept_tcp(listener: &Listener) -> TcpStream {
    listener.accept(Duration::from_secs(10)).unwrap().expect("a client").0
}

/// A server identity in a fresh state directory.
pub fn self_signed() -> ServerTls {
    let root = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(root.path().join("state")).unwrap();
    ServerTls::new(Identity::self_signed(&state).unwrap(), None).unwrap()
}

pub fn pinned(server: &ServerTls) -> ClientTls {
    ClientTls::new(&Trust::Pin(server.fingerprint()), None).unwrap()
}

/// Limits short enough for tests of time-outs.
pub fn short_limits() -> Limits {
    let mut limits = Limits::default();
    limits.connect = Duration::from_secs(5);
    limits.handshake = Duration::from_millis(300);
    limits.stall = Duration::from_millis(300);
    limits
}

/// Does both sides of a handshake.
pub fn connect(
    server: &ServerTls,
    client: &ClientTls,
    limits: Limits,
) -> (Result<TcpChannel, NetError>, Result<TcpChannel, NetError>) {
    let (listener, address) = listener();
    let client = client.clone();
    let connecting = thread::spawn(move || TcpChannel::connect(&address, &client, limits));
    let accepted = TcpChannel::accept(accept_tcp(&listener), server, limits);
    (connecting.join().unwrap(), accepted)
}

/// A client's and a server's end of one connection.
pub fn tls_pair(limits: Limits) -> (TcpChannel, TcpChannel) {
    let server = self_signed();
    let (client, accepted) = connect(&server, &pinned(&server), limits);
    (client.unwrap(), accepted.unwrap())
}

pub fn plaintext_pair(limits: Limits) -> (TcpChannel, TcpChannel) {
    let (listener, address) = listener();
    let client = TcpChannel::connect_insecure_plaintext(&address, limits).unwrap();
    (client, TcpChannel::insecure_plaintext(accept_tcp(&listener), limits).unwrap())
}

/// An authority with files of its own.
pub struct Authority {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        std::fs::write(directory.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { issuer: Issuer::new(params, key), directory }
    }

    pub fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    pub fn issue(&self, name: &str) -> Identity {
        self.issue_as(name, &CertificateParams::new(vec![name.to_owned()]).unwrap())
    }

    /// A certificate of this term, from the one day to the other.
    pub fn issue_within(&self, name: &str, from: (i32, u8, u8), to: (i32, u8, u8)) -> Identity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(from.0, from.1, from.2);
        params.not_after = date_time_ymd(to.0, to.1, to.2);
        self.issue_as(name, &params)
    }

    fn issue_as(&self, name: &str, params: &CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |what: &str| self.directory.path().join(format!("{name}.{what}"));
        std::fs::write(path("crt"), certificate.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        Identity::from_files(&path("crt"), &path("key")).unwrap()
    }
}
