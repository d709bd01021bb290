//! The way out of a network that lets connections through an HTTP proxy alone.
//!
//! The client asks the proxy for a tunnel (`CONNECT`, [RFC 9110](https://www.rfc-editor.org/rfc/rfc9110#name-connect), section 9.3.6); TLS with the server
//! runs inside, so that the proxy sees the server's name, and how many bytes go when.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::str::FromStr;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::dial::open;
use crate::{Address, Limits, NetError};

/// An HTTP proxy, and what it knows the client by.
#[derive(Clone)]
pub struct Proxy {
    address: Address,
    /// `name:password` in base 64.
    credentials: Option<Zeroizing<String>>,
}

impl Proxy {
    /// The port of a proxy whose URL has none, as of any `http` URL.
    const DEFAULT_PORT: u16 = 80;

    /// The proxy that environment variables name for a server: `HTTPS_PROXY`, else `ALL_PROXY`, in either case, unless `NO_PROXY` has the server. None for
    /// this machine itself.
    ///
    /// # Errors
    /// [`NetError::ProxyUrl`] if what they name is no HTTP proxy.
    pub fn of_environment(
        server: &Address,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, NetError> {
        let of = |name: &str| {
            [name.to_owned(), name.to_lowercase()].into_iter().find_map(|name| {
                let value = variable(&name)?.trim().to_owned();
                (!value.is_empty()).then_some((name, value))
            })
        };
        if is_this_machine(server.host()) || of("NO_PROXY").is_some_and(|(_, list)| is_exempt(server, &list))
        {
            return Ok(None);
        }
        let Some((name, url)) = of("HTTPS_PROXY").or_else(|| of("ALL_PROXY")) else { return Ok(None) };
        match url.parse::<Self>() {
            Err(NetError::ProxyUrl { what }) => {
                Err(NetError::ProxyUrl { what: format!("{what} (the environment variable {name})") })
            }
            read => read.map(Some),
        }
    }

    /// Connects to the proxy, and has it connect to a server.
    pub(crate) fn tunnel(&self, server: &Address, limits: Limits) -> Result<TcpStream, NetError> {
        let deadline = Instant::now() + limits.connect;
        let mut stream = open(&self.address, limits)
            .map_err(|source| NetError::Proxy { proxy: self.to_string(), what: source.to_string() })?;
        let failed = |what: String| NetError::Proxy { proxy: self.to_string(), what };
        let asked = self.request(server);
        let head = stream
            .set_write_timeout(Some(limits.connect))
            .and_then(|()| stream.write_all(asked.as_bytes()))
            .and_then(|()| read_head(&mut stream, deadline))
            .map_err(|error| failed(error.to_string()))?;
        let line = head.lines().next().unwrap_or_default();
        match status(line) {
            Some(200..=299) => {
                stream
                    .set_read_timeout(None)
                    .and_then(|()| stream.set_write_timeout(None))
                    .map_err(|error| failed(error.to_string()))?;
                Ok(stream)
            }
            Some(407) if self.credentials.is_some() => {
                Err(failed("it does not accept the name and password".to_owned()))
            }
            Some(407) => Err(failed("it wants a name and a password".to_owned())),
            Some(_) => Err(failed(format!("it does not connect to {server}: {:?}", shown(line)))),
            None => Err(failed(format!("it does not answer as an HTTP proxy: {:?}", shown(line)))),
        }
    }

    fn request(&self, server: &Address) -> Zeroizing<String> {
        let mut request = Zeroizing::new(format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n"));
        if let Some(credentials) = &self.credentials {
            request.push_str("Proxy-Authorization: Basic ");
            request.push_str(credentials);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        request
    }
}

/// Without the password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.address)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Proxy {
    type Err = NetError;

    /// Reads `[http://][NAME:PASSWORD@]HOST[:PORT][/]`, `%` escapes in name and password.
    fn from_str(url: &str) -> Result<Self, NetError> {
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) => return Err(refused(&format!("{scheme} proxies are not supported"))),
            None => url,
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
        let address = Address::with_default(host, Self::DEFAULT_PORT)
            .ok_or_else(|| refused("its host and port cannot be read"))?;
        let credentials = user.map(credentials).transpose()?;
        Ok(Self { address, credentials })
    }
}

/// `NAME:PASSWORD` of a URL, as the proxy is sent it.
fn credentials(user: &str) -> Result<Zeroizing<String>, NetError> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let [name, password] = [name, password]
        .map(|part| unescaped(part).ok_or_else(|| refused("its name or password has a wrong % escape")));
    let mut pair = name?;
    pair.push(b':');
    pair.extend_from_slice(&password?);
    Ok(Zeroizing::new(STANDARD.encode(&*pair)))
}

fn refused(what: &str) -> NetError {
    NetError::ProxyUrl { what: what.to_owned() }
}

/// The bytes of a part of a URL; none where an escape is none.
fn unescaped(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
        }
    }
    Some(bytes)
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a list as of `NO_PROXY` has a server: `*`, a domain with all below it, an address, or a range as `10.0.0.0/8`, each perhaps with a port.
fn is_exempt(server: &Address, list: &str) -> bool {
    list.split([',', ' ']).filter(|entry| !entry.is_empty()).any(|entry| {
        let address = server.host().parse::<IpAddr>().ok();
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse().ok()),
            _ => (entry, None),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_named = match (host.split_once('/'), address) {
            _ if host == "*" => true,
            (Some((network, bits)), Some(address)) => is_within(address, network, bits),
            (None, Some(address)) => host.parse() == Ok(address),
            (None, None) => is_below(server.host(), host),
            (Some(_), None) => false,
        };
        is_named && port.is_none_or(|port: u16| port == server.port())
    })
}

/// Whether a name is a domain or below it.
fn is_below(name: &str, domain: &str) -> bool {
    let domain = domain.trim_start_matches("*.").trim_start_matches('.').to_lowercase();
    let name = name.to_lowercase();
    name.strip_suffix(&domain).is_some_and(|front| front.is_empty() || front.ends_with('.'))
        && !domain.is_empty()
}

fn is_within(address: IpAddr, network: &str, bits: &str) -> bool {
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let ((address, length), (network, of_network)) = (number(address), number(network));
    length == of_network && bits <= length && (bits == 0 || (address ^ network) >> (128 - bits) == 0)
}

/// The head of the proxy's answer, byte by byte: what follows it is the server's.
fn read_head(stream: &mut TcpStream, deadline: Instant) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::Error::new(ErrorKind::TimedOut, "it does not answer in time"));
        }
        stream.set_read_timeout(Some(left))?;
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => return Err(std::io::Error::new(ErrorKind::UnexpectedEof, "it closed the connection")),
            Ok(_) => head.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(std::io::Error::new(ErrorKind::TimedOut, "it does not answer in time"));
            }
            Err(error) => return Err(error),
        }
        if head.len() > LONGEST_HEAD {
            return Err(std::io::Error::new(ErrorKind::InvalidData, "its answer has no end"));
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The status of an answer's first line.
fn status(line: &str) -> Option<u16> {
    let mut words = line.split(' ');
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
    words.next().filter(|_| is_http)?.parse().ok()
}

/// A line of the proxy's, as far as people are shown it.
fn shown(line: &str) -> String {
    line.chars().take(100).collect()
}

/// The longest head of an answer.
const LONGEST_HEAD: usize = 16 << 10;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn urls_are_read() {
        for (url, host, port, credentials) in [
            ("http://proxy.example:3128", "proxy.example", 3128, None),
            ("HTTP://proxy.example/", "proxy.example", 80, None),
            ("proxy.example:8080", "proxy.example", 8080, None),
            ("http://ann:s%40cret@[::1]:3128", "::1", 3128, Some("YW5uOnNAY3JldA==")),
            ("http://ann@proxy", "proxy", 80, Some("YW5uOg==")),
        ] {
            let proxy: Proxy = url.parse().unwrap();
            assert_eq!((proxy.address.host(), proxy.address.port()), (host, port), "{url}");
            assert_eq!(proxy.credentials.as_deref().map(String::as_str), credentials, "{url}");
        }
        for url in [
            "",
            "socks5://proxy:1080",
            "https://proxy",
            "http://",
            "http://a%4:b@proxy",
            "http://proxy:port",
            "http://a b",
        ] {
            assert!(matches!(url.parse::<Proxy>(), Err(NetError::ProxyUrl { .. })), "{url}");
        }
    }

    #[test]
    fn nothing_that_is_shown_has_the_password() {
        let proxy: Proxy = "http://ann:secret@proxy:3128".parse().unwrap();
        assert_eq!(
            (format!("{proxy}"), format!("{proxy:?}")),
            ("http://proxy:3128".to_owned(), "http://proxy:3128".to_owned())
        );
        let error = "http://ann:se%zzcret@proxy".parse::<Proxy>().unwrap_err();
        assert!(!error.to_string().contains("cret"));
    }

    #[test]
    fn the_environment_names_a_proxy() {
        let found = |server: &str, pairs: &[(&str, &str)]| {
            let variable =
                |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            Proxy::of_environment(&address(server), variable).unwrap().map(|proxy| proxy.to_string())
        };
        let http = "http://a:1";
        assert_eq!(
            found("models.example", &[("HTTPS_PROXY", http), ("ALL_PROXY", "http://b:1")]).unwrap(),
            http
        );
        assert_eq!(found("models.example", &[("all_proxy", http)]).unwrap(), http);
        assert_eq!(found("models.example", &[("https_proxy", " "), ("ALL_PROXY", http)]).unwrap(), http);
        assert_eq!(found("models.example", &[("HTTP_PROXY", http)]), None);
        for here in ["localhost", "127.0.0.1", "127.8.8.8", "[::1]:9"] {
            assert_eq!(found(here, &[("ALL_PROXY", http)]), None, "{here}");
        }
        for (server, list, is_direct) in [
            ("models.example", "*", true),
            ("models.example", "other, example", true),
            ("models.example", ".example", true),
            ("models.example", "*.example", true),
            ("models.example", "models.example:7400", true),
            ("models.example", "models.example:443", false),
            ("models.example", "dels.example", false),
            ("models.example", "els", false),
            ("10.1.2.3", "10.0.0.0/8", true),
            ("11.1.2.3", "10.0.0.0/8", false),
            ("10.1.2.3", "0.0.0.0/0", true),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.0.0.0/33", false),
            ("[fd00::5]:7400", "fd00::/16", true),
            ("[fd00::5]:7400", "fd00::5", true),
            ("[fd00::5]:7400", "[fd00::5]:7401", false),
            ("models.example", "10.0.0.0/8", false),
        ] {
            let direct = found(server, &[("ALL_PROXY", http), ("no_proxy", list)]).is_none();
            assert_eq!(direct, is_direct, "{server} {list}");
        }
    }

    #[test]
    fn an_address_that_is_no_proxys_is_refused() {
        let variable = |name: &str| (name == "ALL_PROXY").then(|| "socks5h://ann:secret@a:1".to_owned());
        let error = Proxy::of_environment(&address("models.example"), variable).unwrap_err().to_string();
        assert!(error.contains("socks5h") && error.contains("ALL_PROXY"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
