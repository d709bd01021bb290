//! The model owner's side: serves models to many clients at once.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lanner_net::web::{Door, File, Origins};
use lanner_net::{Address, Identity, Listener, NetError, ServerTls, StateDirectory, check_authorities};
use lanner_network::Field;
use lanner_process::Mark;
use lanner_session::executor::ServedModel;
use lanner_session::handshake::{ModelEntry, Offer};
use lanner_session::quarter_of_memory;
use lanner_session::server_loop::{
    self, ComputedStep, Entry, Journal, Security, ServerOptions, Snapshot, Web,
};
use lanner_session::serving::{Bans, Patience, Service};
use lanner_step::Party;
use lanner_store::{Held, Limits as StockLimits, SharedWeights, Stock, Uploads};
use serde::{Deserialize, Serialize};

use crate::client::limits;
use crate::convert::elsewhere;
use crate::{Error, ErrorKind, Model, Result};

/// Where to listen, how to secure it, how much to allow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// `HOST:PORT`; port 0 for a free one.
    pub listen: String,
    /// A PEM certificate chain, instead of a self-signed certificate.
    pub tls_cert: Option<PathBuf>,
    /// Its key.
    pub tls_key: Option<PathBuf>,
    /// Authorities whose certificates clients must show.
    pub client_ca: Option<PathBuf>,
    /// After how many failed checks, which no honest client fails, the key of a client's certificate is banned, for models of mode `hardened`; 1 where it is left out.
    #[serde(default)]
    pub ban_after: Option<NonZeroU32>,
    /// Where the self-signed key is kept.
    pub state_dir: PathBuf,
    /// Sessions at once.
    pub max_sessions: usize,
    /// Bytes that all sessions together may keep of material, keys and what clients have sent ahead; by default a quarter of the
    /// machine's memory, and enough for one session with one prediction.
    pub max_material: Option<u64>,
    /// Bytes of material and keys that are kept on disk for clients, none of which may have more than half; by default a quarter of what is
    /// free there, and 16 GiB at most. With 0 nothing is kept.
    #[serde(default)]
    pub max_stock: Option<u64>,
    /// Bytes of uploaded keys that are kept on disk, of which those go first that were used least recently; by default a quarter of what is
    /// free there, and 4 GiB at most. With 0 each session has to be sent its keys.
    #[serde(default)]
    pub max_keys: Option<u64>,
    /// Seconds to wait for a peer.
    pub timeout: Option<f64>,
    /// Seconds that a session waits for its client's next request, at least `timeout`; a quarter of an hour where nothing is said. Then its
    /// connection is closed, without a refusal, so that a client that comes back goes on in a new session.
    #[serde(default)]
    pub idle: Option<f64>,
    /// A directory in which servers of this machine keep encoded weights once for all of them; none for a server that keeps its own.
    #[serde(default)]
    pub share_weights: Option<PathBuf>,
    /// Whether all clients are the server's own owner, as where one program is both parties: then none of them has to be known again, and one that fails a check is the last one that is
    /// served a model of mode `hardened`.
    #[serde(default)]
    pub own_clients: bool,
    /// No TLS: both sides must say so.
    #[serde(default)]
    pub insecure_plaintext: bool,
    /// How browsers come in; without it none do.
    #[serde(default)]
    pub web: Option<WebConfig>,
}

/// How browsers come in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebConfig {
    /// `HOST:PORT`, or what [`ServerConfig::listen`] is.
    pub listen: String,
    /// Origins of pages that may connect, beside the server's own.
    pub origins: Vec<String>,
    /// Whether programs may connect that name no origin.
    pub missing_origin: bool,
    /// Host names of the server, beside `localhost` and addresses in numbers.
    pub names: Vec<String>,
    /// A PEM certificate chain that browsers accept.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

/// A file of a page: its path in the page's address, its content type, its bytes.
pub type PageFile = (String, String, Arc<[u8]>);

impl ServerConfig {
    /// Without TLS, on a free port of this machine's loopback. The other ways differ from this one in some fields.
    #[must_use]
    pub fn plaintext(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen: "127.0.0.1:0".to_owned(),
            tls_cert: None,
            tls_key: None,
            client_ca: None,
            ban_after: None,
            state_dir: state_dir.into(),
            max_sessions: 16,
            max_material: None,
            max_stock: None,
            max_keys: None,
            timeout: None,
            share_weights: None,
            idle: None,
            own_clients: false,
            insecure_plaintext: true,
            web: None,
        }
    }
}

/// What a server keeps on disk for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Pairings and material.
    #[serde(flatten)]
    pub stock: Held,
    /// Bytes of keys that clients uploaded, complete or not.
    pub uploaded_bytes: u64,
}

/// Serves models until it is stopped or dropped. A child that `fork` made has none of its threads: it can neither start nor stop it there, and
/// what drops it there leaves the parent's connections as they are.
pub struct Server {
    config: ServerConfig,
    security: Security,
    service: Arc<Service>,
    max_material: u64,
    fingerprint: Option<String>,
    outside_term: Option<String>,
    page: Vec<PageFile>,
    state: Mutex<State>,
    mark: Mark,
}

/// What changes when a server starts and stops.
struct State {
    address: String,
    web_address: Option<String>,
    running: Option<Arc<server_loop::Server>>,
    ended: Snapshot,
    journal: Arc<Journal>,
}

impl Server {
    /// Encodes the models' weights and prepares the certificate; nothing listens yet.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`] about certificates and the state directory; [`ErrorKind::Model`] if a model cannot be served, or its
    /// file of encoded weights is damaged; [`ErrorKind::Misuse`] if the directory of those cannot be used, or one prediction's material is
    /// more than all sessions may keep.
    pub fn new(models: Vec<(String, Arc<Model>)>, config: ServerConfig) -> Result<Self> {
        lanner_session::use_all_cores();
        let (security, shown) = secure(&config)?;
        let Shown { fingerprint, outside_term } = shown;
        check_clients(&models, &config)?;
        let weights = config.share_weights.as_ref().map(SharedWeights::open).transpose()?;
        let models =
            models.into_iter().map(|model| served(model, weights.as_ref())).collect::<Result<_>>()?;
        let service = Service::new(models, patience(&config)?, stock(&config), uploads(&config));
        let service =
            service.with_bans(Bans::new(&config.state_dir, config.ban_after.unwrap_or(NonZeroU32::MIN)));
        let (address, max_material) = (config.listen.clone(), max_material(&service, config.max_material)?);
        let state = State {
            address,
            web_address: None,
            running: None,
            ended: Snapshot::default(),
            journal: Arc::default(),
        };
        let (service, state, mark) = (Arc::new(service), Mutex::new(state), Mark::here());
        let page = Vec::new();
        Ok(Self { config, security, service, max_material, fingerprint, outside_term, page, state, mark })
    }

    /// Has browsers get these files, where they may connect.
    pub fn set_page(&mut self, page: Vec<PageFile>) {
        self.page = page;
    }

    /// Listens and serves on threads of its own; returns when clients can connect.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`] if the address cannot be listened on; [`ErrorKind::Misuse`] if the server already runs, or belongs to the
    /// process that this one is a copy of.
    pub fn start(&self) -> Result<()> {
        self.mark.check(SERVER)?;
        let mut state = self.state();
        if state.running.is_some() {
            return Err(Error::new(ErrorKind::Misuse, "the server already runs").fix("stop it first"));
        }
        let address: Address = self.config.listen.parse()?;
        let options = ServerOptions {
            security: self.security.clone(),
            max_sessions: self.config.max_sessions,
            max_material: self.max_material,
            limits: limits(self.config.timeout)?,
        };
        let handler = Arc::clone(&self.service);
        let web = self.web()?;
        let listener = Listener::bind(&address)?;
        let running = server_loop::Server::start_with_web(listener, web, options, handler)?;
        state.address = running.address().to_string();
        state.web_address = running.web_address().map(|address| address.to_string());
        state.journal = running.journal();
        state.running = Some(Arc::new(running));
        Ok(())
    }

    /// Accepts no more clients, lets those that are served finish for at most `drain_seconds`. Meanwhile other threads can ask for counters.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if the time is not possible, or as for [`Self::start`].
    pub fn stop(&self, drain_seconds: f64) -> Result<()> {
        self.mark.check(SERVER)?;
        let wrong = |_| Error::new(ErrorKind::Misuse, format!("a time of {drain_seconds} s is not possible"));
        let grace = Duration::try_from_secs_f64(drain_seconds).map_err(wrong)?;
        let running = self.state().running.clone();
        if let Some(running) = running {
            let ended = running.stop(grace).metrics;
            let mut state = self.state();
            (state.ended, state.running) = (ended, None);
        }
        Ok(())
    }

    /// `HOST:PORT`, as bound once the server was started.
    #[must_use]
    pub fn address(&self) -> String {
        self.state().address.clone()
    }

    /// `HOST:PORT` for browsers, once the server was started; none if they may not connect.
    #[must_use]
    pub fn web_address(&self) -> Option<String> {
        self.state().web_address.clone()
    }

    /// What browsers meet, if they may connect.
    fn web(&self) -> Result<Option<Web>> {
        let Some(web) = &self.config.web else { return Ok(None) };
        let WebConfig { listen, origins, missing_origin, names, cert, key } = web;
        let certificate = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert.as_path(), key.as_path())),
            (None, None) => None,
            _ => return Err(Error::new(ErrorKind::Misuse, "a certificate and its key belong together")),
        };
        let origins =
            Origins { allowed: origins.clone(), names: names.clone(), missing_is_allowed: *missing_origin };
        let file = |(path, kind, content): &PageFile| {
            (path.clone(), File { kind: kind.clone(), content: Arc::clone(content) })
        };
        let files: HashMap<String, File> = self.page.iter().map(file).collect();
        let door = Door::new(origins, files, certificate)?;
        if *listen == self.config.listen && !listen.ends_with(":0") {
            if door.is_secured() {
                let what = "clients and browsers cannot share an address where browsers are shown another certificate";
                return Err(Error::new(ErrorKind::Misuse, what).fix("give browsers another port"));
            }
            return Ok(Some(Web { door, listener: None }));
        }
        let listener = Listener::bind(&listen.parse()?).map_err(|error| {
            let is_of_address = matches!(error, NetError::Listen { .. });
            let error = Error::from(error);
            if is_of_address { error.fix(elsewhere(Field::WEB)) } else { error }
        })?;
        Ok(Some(Web { door, listener: Some(listener) }))
    }

    /// What clients pin; none in plaintext.
    #[must_use]
    pub fn fingerprint(&self) -> Option<&str> {
        self.fingerprint.as_deref()
    }

    /// Why the certificate's term does not hold now, as in "it expired on 2021-02-01"; none if it holds, or in plaintext.
    #[must_use]
    pub fn outside_term(&self) -> Option<&str> {
        self.outside_term.as_deref()
    }

    /// Counts since the start; of a server that was stopped, with what it served while it stopped.
    #[must_use]
    pub fn stats(&self) -> Snapshot {
        let state = self.state();
        state.running.as_ref().map_or_else(|| state.ended.clone(), |running| running.metrics())
    }

    /// What is kept on disk for clients. A disk that fails counts as empty here, and is told to whoever wants something of it.
    #[must_use]
    pub fn kept(&self) -> Kept {
        let stock = self.service.stock().held().unwrap_or_default();
        Kept { stock, uploaded_bytes: self.service.uploads().held() }
    }

    /// What became of connections since this was last asked, and how many more there were than could be kept: who, which model, how many
    /// predictions, how each ended. Of a server that was stopped, those that ended while it stopped too.
    #[must_use]
    pub fn journal(&self) -> (Vec<Entry>, u64) {
        self.state().journal.take()
    }

    /// What the running server has computed for each step of each model, set-ups among them: wall time without waits and transport.
    #[must_use]
    pub fn computed(&self) -> Vec<ComputedStep> {
        self.state().running.as_ref().map_or_else(Vec::new, |running| running.computed())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked left a state that was there before.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is kept on disk for clients, as much as asked or the default: a quarter of what is free or kept already.
fn stock(config: &ServerConfig) -> Stock {
    let stock = Stock::new(&config.state_dir, Party::Server, StockLimits::default());
    let kept = || stock.held().unwrap_or_default().bytes;
    let room = || lanner_store::free_bytes(&config.state_dir).saturating_add(kept());
    let limits = StockLimits::default();
    let bytes = config.max_stock.unwrap_or_else(|| (room() / 4).min(limits.bytes));
    stock.within(StockLimits { bytes, pairing_bytes: bytes / 2, ..limits })
}

/// What is kept of uploads, as much as asked or the default: a quarter of what is free or kept already.
fn uploads(config: &ServerConfig) -> Uploads {
    let uploads = |limit| Uploads::new(&config.state_dir, limit);
    let room = || lanner_store::free_bytes(&config.state_dir).saturating_add(uploads(0).held());
    uploads(config.max_keys.unwrap_or_else(|| (room() / 4).min(USUAL_UPLOADS)))
}

/// Checks that clients are known again where they may be any: what one learns by being caught is little, and it must not come back as somebody else. So where anybody is banned, the file
/// of authorities has authorities alone; elsewhere clients' own certificates may be in it, which say who is let in as well.
fn check_clients(models: &[(String, Arc<Model>)], config: &ServerConfig) -> Result<()> {
    let is_checked =
        |(_, model): &&(String, Arc<Model>)| model.manifest().plan.mode.design().checks_clients();
    let checked = models.iter().find(is_checked);
    if let Some(path) = config.client_ca.as_ref().filter(|_| checked.is_some() || config.ban_after.is_some())
    {
        check_authorities(path)?;
    }
    match checked {
        Some((name, model)) if config.client_ca.is_none() && !config.own_clients => {
            let what = format!(
                "model {name} has mode {}, which needs client certificates, and {} is missing",
                model.manifest().plan.mode.name(),
                Field::CLIENT_CA
            );
            let fix = format!("give {} with the authority's certificate", Field::CLIENT_CA);
            Err(Error::new(ErrorKind::Misuse, what).fix(fix))
        }
        _ => Ok(()),
    }
}

/// What there is to say of the certificate; nothing in plaintext.
#[derive(Default)]
struct Shown {
    fingerprint: Option<String>,
    outside_term: Option<String>,
}

/// The certificate to show, and what there is to say of it.
fn secure(config: &ServerConfig) -> Result<(Security, Shown)> {
    if config.insecure_plaintext {
        if config.tls_cert.is_some() || config.tls_key.is_some() || config.client_ca.is_some() {
            let error = Error::new(ErrorKind::Misuse, "certificates mean nothing without TLS");
            return Err(error.fix(format!("leave {} or the certificates out", Field::INSECURE_PLAINTEXT)));
        }
        return Ok((Security::InsecurePlaintext, Shown::default()));
    }
    let identity = match (&config.tls_cert, &config.tls_key) {
        (Some(cert), Some(key)) => Identity::from_files(cert, key)?,
        (None, None) => Identity::self_signed(&StateDirectory::open(&config.state_dir)?)?,
        _ => {
            let error = Error::new(ErrorKind::Misuse, "a certificate and its key belong together");
            return Err(error.fix(format!("give {} and {}", Field::TLS_CERT, Field::TLS_KEY)));
        }
    };
    let shown = Shown {
        fingerprint: Some(identity.fingerprint().to_string()),
        outside_term: identity.outside_term(),
    };
    let tls = ServerTls::new(identity, config.client_ca.as_deref())?;
    Ok((Security::Tls(tls), shown))
}

/// How long a client may be silent.
fn patience(config: &ServerConfig) -> Result<Patience> {
    let within = limits(config.timeout)?.stall;
    let between = match config.idle {
        Some(_) => limits(config.idle)?.stall,
        None => IDLE_PATIENCE,
    };
    Ok(Patience { within, between: between.max(within) })
}

/// A model as it is offered, and encoded.
fn served(
    (name, model): (String, Arc<Model>),
    weights: Option<&SharedWeights>,
) -> Result<(Offer, ServedModel)> {
    let manifest = model.manifest();
    let commitment = manifest.commitment_bytes()?;
    let offer = Offer {
        model: ModelEntry { name, commitment },
        parameters: manifest.identity()?,
        manifest: manifest.to_json()?.into_bytes(),
    };
    let (network, plan) = (model.network(), &manifest.plan);
    let served = match weights {
        Some(weights) => ServedModel::sharing(network, plan, weights, &commitment)?,
        None => ServedModel::new(network, plan)?,
    };
    Ok((offer, served))
}

/// What sessions may keep: as asked, or the default.
fn max_material(service: &Service, asked: Option<u64>) -> Result<u64> {
    let least = service.least_material();
    match asked {
        Some(asked) if asked < least => {
            let what = format!("{asked} bytes for all sessions are too few: one session takes {least} bytes");
            let fix = format!("give {} more, or leave it out", Field::MAX_MATERIAL);
            Err(Error::new(ErrorKind::Misuse, what).fix(fix))
        }
        Some(asked) => Ok(asked),
        None => Ok(quarter_of_memory().max(least)),
    }
}

const SERVER: &str = "this server";
/// Bytes of uploaded keys that are kept where nobody says how many, and there is room.
const USUAL_UPLOADS: u64 = 4 << 30;
/// How long a session waits for its client's next request.
const IDLE_PATIENCE: Duration = Duration::from_secs(15 * 60);
