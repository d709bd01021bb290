//! A client's way to a server: whom it trusts, how it gets there, and what it keeps.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanner_net::{Address, ClientTls, Fingerprint, Identity, Proxy, TcpChannel, Trust};
use lanner_network::Field;
use lanner_process::Mark;
use lanner_session::requests::{Meeting, Shelf};
use lanner_step::Party;
use lanner_store::{Limits as StockLimits, Stock, StoreError};
use serde::Deserialize;

use crate::client::{Met, Wanted, limits};
use crate::line::Line;
use crate::set_up::SetUpWatch;
use crate::{Client, Error, ErrorKind, LimitOptions, Result, keys};

/// Where to connect, whom to trust.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    /// `HOST` or `HOST:PORT`.
    pub address: String,
    /// The model's name; none if the server has one model only.
    pub model: Option<String>,
    /// The fingerprint of the server's certificate.
    pub pin: Option<String>,
    /// A PEM file of authorities, instead of a pin.
    pub ca: Option<PathBuf>,
    /// The client's own certificate, for servers that ask for one.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// The commitment of the model that is expected.
    pub pin_model: Option<String>,
    /// No TLS: both sides must say so.
    #[serde(default)]
    pub insecure_plaintext: bool,
    /// The URL of the HTTP proxy on the way to the server, or `none`; without it what the environment's `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    #[serde(default)]
    pub proxy: Option<String>,
    /// Seconds to wait for the peer.
    pub timeout: Option<f64>,
    /// What the server's model may ask of this machine.
    #[serde(default)]
    pub limits: LimitOptions,
    /// Where pairings and material are kept for other sessions; without it none are.
    #[serde(default)]
    pub state_dir: Option<PathBuf>,
    /// Whether nothing is kept where a parent of this process had the index there open, which is an error otherwise.
    #[serde(default)]
    pub leave_inherited: bool,
    /// A file that [`keygen`](crate::keygen) wrote: the session's keys, which a server is sent once. Without it each session makes its own.
    #[serde(default)]
    pub keys: Option<PathBuf>,
}

impl ClientConfig {
    /// Without TLS, for a server that has one model, whichever it is. The other ways differ from this one in some fields.
    #[must_use]
    pub fn plaintext(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            model: None,
            pin: None,
            ca: None,
            cert: None,
            key: None,
            pin_model: None,
            insecure_plaintext: true,
            proxy: None,
            timeout: None,
            limits: LimitOptions::default(),
            state_dir: None,
            leave_inherited: false,
            keys: None,
        }
    }
}

impl Client {
    /// Connects, shakes hands, checks the model and does the set-up.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if nothing says whom to trust, or the keys do not fit the model; [`ErrorKind::Transport`] or [`ErrorKind::Peer`] about the server.
    pub fn connect(config: &ClientConfig) -> Result<Self> {
        Self::connect_watched(config, &SetUpWatch::default())
    }

    /// The same, with a watch that tells how far it has come.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_watched(config: &ClientConfig, watched: &SetUpWatch) -> Result<Self> {
        let mark = Mark::here();
        lanner_session::use_all_cores();
        watched.begin();
        let address: Address = config.address.parse()?;
        let wanted = Wanted {
            model: config.model.clone(),
            pin_model: config.pin_model.clone(),
            limits: config.limits,
            timeout: config.timeout,
        };
        let request = wanted.request()?;
        let keys = config.keys.as_deref().map(keys::read).transpose()?;
        let wait = limits(config.timeout)?;
        let stock = config.state_dir.as_deref().map(|state| stock(state, config.leave_inherited));
        let stock = stock.transpose()?.flatten();
        let mut open = || Ok(Box::new(open(config, &address)?) as Box<dyn Line>);
        let met = Met::over(&mut open, &request, config.limits, watched)?;
        Self::set_up(met, config.limits, wait, mark, watched, |mut requester, met| {
            if let Some((path, keys)) = config.keys.as_deref().zip(keys) {
                let upload = keys::upload_of(path);
                let with_keys = requester.with_keys(keys, move || std::fs::read(&upload).ok());
                requester = with_keys.map_err(|error| Error::from(error).at(path.display().to_string()))?;
            }
            if let Some(stock) = stock {
                let meeting = Meeting::new(&met.agreement, &met.model, peer_of(config, &address), None);
                requester = requester.with_shelf(Shelf::new(stock, meeting));
                requester.resume(&mut *met.channel)?;
            }
            Ok(requester)
        })
    }
}

/// What is kept in a state directory. One whose disk fails is as good as none until something is to be kept.
fn stock(state_dir: &Path, leave_inherited: bool) -> Result<Option<Arc<Stock>>> {
    let stock = Stock::new(state_dir, Party::Client, StockLimits::default());
    match stock.held() {
        Err(StoreError::Inherited { .. }) if leave_inherited => Ok(None),
        Err(error @ StoreError::Inherited { .. }) => Err(error.into()),
        _ => Ok(Some(Arc::new(stock))),
    }
}

/// Where a client finds its pairings with a server again.
fn peer_of(config: &ClientConfig, address: &Address) -> String {
    match &config.pin {
        Some(pin) => pin.parse::<Fingerprint>().map_or_else(|_| pin.clone(), |pin| pin.to_string()),
        None if config.insecure_plaintext => format!("{address} without TLS"),
        None => address.to_string(),
    }
}

/// The proxy on the way to a server.
fn proxy_of(config: &ClientConfig, address: &Address) -> Result<Option<Proxy>> {
    Ok(match config.proxy.as_deref() {
        Some("none") => None,
        Some(url) => Some(url.parse()?),
        None => Proxy::of_environment(address, |name| std::env::var(name).ok())?,
    })
}

/// A connection to the server, if it is the one that is trusted.
pub(crate) fn open(config: &ClientConfig, address: &Address) -> Result<TcpChannel> {
    let limits = limits(config.timeout)?;
    let proxy = proxy_of(config, address)?;
    if config.insecure_plaintext {
        if config.pin.is_some() || config.ca.is_some() || config.cert.is_some() || config.key.is_some() {
            let error = Error::new(ErrorKind::Misuse, "a pin and certificates mean nothing without TLS");
            return Err(error.fix(format!("leave {} or the others out", Field::INSECURE_PLAINTEXT)));
        }
        return Ok(TcpChannel::connect_insecure_plaintext_through(proxy.as_ref(), address, limits)?);
    }
    let trust = match (&config.pin, &config.ca) {
        (Some(pin), None) => Trust::Pin(pin.parse()?),
        (None, Some(ca)) => Trust::Authorities(ca.clone()),
        (Some(_), Some(_)) => {
            let error = Error::new(ErrorKind::Misuse, "both a pin and a CA file are given");
            return Err(error.fix(format!("give {} or {}", Field::PIN, Field::CA)));
        }
        (None, None) => {
            let error = Error::new(ErrorKind::Misuse, "nothing says which server to trust");
            return Err(error.fix(format!(
                "give {} with the fingerprint that the server printed, or {}",
                Field::PIN,
                Field::CA
            )));
        }
    };
    let identity = match (&config.cert, &config.key) {
        (Some(cert), Some(key)) => Some(Identity::from_files(cert, key)?),
        (None, None) => None,
        _ => {
            let what = format!("{} and {} belong together", Field::CERT, Field::KEY);
            return Err(Error::new(ErrorKind::Misuse, what).fix("give both"));
        }
    };
    let tls = ClientTls::new(&trust, identity)?;
    Ok(TcpChannel::connect_through(proxy.as_ref(), address, &tls, limits)?)
}
