//! Where a server listens.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use crate::NetError;

/// A host (a name, an IPv4 address, or an IPv6 address in brackets) and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// The port of a server that names none.
    pub const DEFAULT_PORT: u16 = 7400;

    /// Reads `HOST` or `HOST:PORT`, where another port than lanner's is meant if none is given.
    pub(crate) fn with_default(text: &str, port: u16) -> Option<Self> {
        parse(text, port)
    }

    /// The host, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The socket addresses of the host.
    ///
    /// # Errors
    /// [`NetError::Resolve`] if it has none.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, NetError> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let addresses: Vec<_> =
            found.map_err(|source| NetError::Resolve { host: self.host.clone(), source })?.collect();
        if addresses.is_empty() {
            let source = std::io::Error::other("no address");
            return Err(NetError::Resolve { host: self.host.clone(), source });
        }
        Ok(addresses)
    }
}

impl FromStr for Address {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Self, NetError> {
        Self::with_default(text, Self::DEFAULT_PORT)
            .ok_or_else(|| NetError::Address { text: text.to_owned() })
    }
}

fn parse(text: &str, default_port: u16) -> Option<Address> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            // A zone may stand behind the address, as in fe80::1%eth0.
            host.split('%').next()?.parse::<Ipv6Addr>().ok()?;
            (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map_or(Ok(default_port), str::parse).ok()?;
    let plain = !host.is_empty() && !host.chars().any(|c| c.is_whitespace() || "/[]".contains(c));
    plain.then(|| Address { host: host.to_owned(), port })
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_and_without_ports_are_read() {
        for (text, host, port) in [
            ("example.org", "example.org", 7400),
            ("10.0.0.1:80", "10.0.0.1", 80),
            ("[::1]", "::1", 7400),
            ("[::1]:9", "::1", 9),
            ("[fe80::1%eth0]:9", "fe80::1%eth0", 9),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host(), address.port()), (host, port));
            assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            ":80",
            "host:",
            "host:70000",
            "::1",
            "[::1",
            "[::1]80",
            "[[r]",
            "[host]",
            "[]",
            "a[b]",
            "[%0]",
            "http://host",
            "a b",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
