//! The head of an HTTP request, and under which names and from which pages one may come.

use std::net::IpAddr;

use tungstenite::handshake::machine::TryParse;
use tungstenite::handshake::server::Request;
use tungstenite::http::header::{HOST, HeaderName, ORIGIN, UPGRADE};

/// From which pages a WebSocket may be opened.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Origins beside the server's own, such as `https://page.example`.
    pub allowed: Vec<String>,
    /// Host names of the server, beside `localhost` and addresses in numbers.
    pub names: Vec<String>,
    /// Whether one without an origin may connect, as programs do that are no browsers.
    pub missing_is_allowed: bool,
}

/// A request's head, and what came behind it.
pub(super) struct Head {
    pub(super) request: Request,
    pub(super) behind: Vec<u8>,
}

impl Head {
    /// Reads the head from what has come; none if it is not whole yet.
    ///
    /// An error if it is no head of HTTP.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        let parsed = Request::try_parse(bytes).map_err(|_| "this is no request of HTTP")?;
        Ok(parsed.map(|(length, request)| Self { request, behind: bytes[length..].to_vec() }))
    }

    /// Whether it asks for a WebSocket.
    pub(super) fn asks_for_upgrade(&self) -> bool {
        self.one(UPGRADE).is_some_and(|upgrade| upgrade.eq_ignore_ascii_case("websocket"))
    }

    /// The header's value if there is exactly one.
    fn one(&self, name: HeaderName) -> Option<&str> {
        let mut values = self.request.headers().get_all(name).iter();
        let (first, second) = (values.next()?, values.next());
        if second.is_some() { None } else { first.to_str().ok() }
    }

    /// Checks under which name the request came.
    pub(super) fn check_host(&self, origins: &Origins) -> Result<(), String> {
        let host = self.one(HOST).ok_or("the request has no Host, or several")?;
        if names_a_host(host) && origins.is_own(name_of(host)) {
            return Ok(());
        }
        Err("this server does not answer to the name in the request".to_owned())
    }

    /// Checks from which page the request came, after its name.
    pub(super) fn check_origin(&self, origins: &Origins, scheme: &str) -> Result<(), String> {
        let count = self.request.headers().get_all(ORIGIN).iter().count();
        if count == 0 {
            return if origins.missing_is_allowed {
                Ok(())
            } else {
                Err("the request has no Origin: only pages may connect here".to_owned())
            };
        }
        let origin = self.one(ORIGIN).ok_or("the request has several Origins")?;
        let own = self.one(HOST).is_some_and(|host| same(origin, &format!("{scheme}://{host}")));
        if own || origins.allowed.iter().any(|allowed| same(origin, allowed)) {
            return Ok(());
        }
        Err("pages of this origin may not connect here".to_owned())
    }
}

/// Whether two origins are one: they are ASCII, and case means nothing in them.
fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Whether a text is a host with or without a port.
fn names_a_host(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte))
}

/// The host without port and brackets.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.split(':').next().unwrap_or(""),
    }
}

impl Origins {
    /// Whether a host is this server's: an address in numbers, since a page that was made to resolve here has a name, or a name that it was given.
    fn is_own(&self, name: &str) -> bool {
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
            || self.allowed.iter().any(|origin| {
                origin.split_once("://").is_some_and(|(_, host)| name_of(host).eq_ignore_ascii_case(name))
            })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn head(headers: &str) -> Head {
        let text = format!("GET /lanner HTTP/1.1\r\n{headers}\r\nrest");
        Head::parse(text.as_bytes()).unwrap().unwrap()
    }

    fn origins(allowed: &[&str]) -> Origins {
        let allowed = allowed.iter().map(|&origin| origin.to_owned()).collect();
        Origins { allowed, names: vec!["laptop".to_owned()], missing_is_allowed: false }
    }

    #[test]
    fn a_head_is_whole_or_waited_for_or_refused() {
        let whole = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        for end in 0..whole.len() {
            assert!(Head::parse(&whole[..end]).unwrap().is_none(), "{end}");
        }
        assert_eq!(head("Host: a\r\n").behind, b"rest");
        for wrong in [&b"\x16\x03\x01\x02\x00\x01"[..], b"GET / HTTP/1.1\r\nHost\r\n\r\n", b"\0\0\0\0\x01\0"]
        {
            assert!(Head::parse(wrong).is_err());
        }
    }

    #[test]
    fn only_its_own_names_reach_a_server() {
        let own = origins(&["https://page.example:8443"]);
        for host in ["127.0.0.1:7480", "[::1]:7480", "localhost", "LAPTOP:1", "10.1.2.3", "page.example"] {
            assert!(head(&format!("Host: {host}\r\n")).check_host(&own).is_ok(), "{host}");
        }
        for host in
            ["evil.example", "evil.example:7480", "", "a@laptop", "laptop/x", "[laptop", "1.2.3.4.evil"]
        {
            assert!(head(&format!("Host: {host}\r\n")).check_host(&own).is_err(), "{host}");
        }
        assert!(head("").check_host(&own).is_err());
        assert!(head("Host: localhost\r\nHost: localhost\r\n").check_host(&own).is_err());
    }

    #[test]
    fn only_stated_origins_and_its_own_reach_a_server() {
        let check = |origins: &Origins, origin: &str| {
            head(&format!("Host: localhost:7480\r\nOrigin: {origin}\r\n")).check_origin(origins, "http")
        };
        let stated = origins(&["https://page.example"]);
        for origin in ["http://localhost:7480", "https://page.example", "HTTPS://page.example"] {
            assert!(check(&stated, origin).is_ok(), "{origin}");
        }
        for origin in [
            "https://localhost:7480",
            "http://localhost",
            "http://page.example",
            "https://page.example.test",
            "https://page.example:8443",
            "null",
            "",
        ] {
            assert!(check(&stated, origin).is_err(), "{origin}");
        }
        assert!(
            head("Host: a\r\nOrigin: http://a\r\nOrigin: http://a\r\n")
                .check_origin(&stated, "http")
                .is_err()
        );
        assert!(head("Host: a\r\n").check_origin(&stated, "http").is_err());
        assert!(
            head("Host: a\r\n").check_origin(&Origins { missing_is_allowed: true, ..stated }, "http").is_ok()
        );
    }
}
