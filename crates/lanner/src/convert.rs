//! From the layers' errors to the façade's.

use std::borrow::Cow;
use std::io::ErrorKind as ErrorKindOfDisk;

use lanner_net::NetError;
use lanner_network::{CompileError, Field, InputError};
use lanner_plan::PlanError;
use lanner_process::OtherProcess;
use lanner_session::executor::ExecutionError;
use lanner_session::handshake::HandshakeError;
use lanner_step::ProtocolError;
use lanner_store::StoreError;
use lanner_wire::{ChannelError, Refusal};

use crate::{Error, ErrorKind};

impl From<CompileError> for Error {
    fn from(error: CompileError) -> Self {
        use CompileError::{Precision, RangeOverflow, Shape, UnknownTensor, Unproved, UnsupportedOp, Wiring};
        let kind = match error {
            UnsupportedOp { .. } | Unproved { .. } => ErrorKind::Unsupported,
            CompileError::Calibration { .. } => ErrorKind::Input,
            CompileError::Tracing { .. } => ErrorKind::Transport,
            CompileError::Option { .. }
            | CompileError::InputRange { .. }
            | CompileError::Preprocessing { .. } => ErrorKind::Misuse,
            _ => ErrorKind::Model,
        };
        let place = match &error {
            UnsupportedOp { node, .. }
            | Shape { node, .. }
            | Wiring { node, .. }
            | UnknownTensor { node, .. }
            | RangeOverflow { node, .. }
            | Unproved { node }
            | Precision { node, .. } => node.clone(),
            _ => String::new(),
        };
        Self::new(kind, error.to_string()).at(place).fix(error.fix())
    }
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        Self::new(ErrorKind::Input, error.to_string()).fix(error.fix())
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        let kind = match &error {
            PlanError::Unsupported { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Model,
        };
        Self::new(kind, error.to_string()).at(error.place()).fix(error.fix())
    }
}

impl From<ProtocolError> for Error {
    fn from(error: ProtocolError) -> Self {
        match error.channel() {
            Some(channel) => from_channel(channel),
            None => Self::new(ErrorKind::Model, error.to_string()),
        }
    }
}

impl From<ExecutionError> for Error {
    fn from(error: ExecutionError) -> Self {
        let place = match &error {
            ExecutionError::Step { step, .. } => format!("layer {step}"),
            _ => String::new(),
        };
        if let Some(channel) = error.channel() {
            return from_channel(channel).at(place);
        }
        if let ExecutionError::Store(error) = &error {
            return from_store(error);
        }
        if let ExecutionError::OtherProcess(error) = error {
            return error.into();
        }
        let kind = match &error {
            // What the peer sent does not decode; nothing else can fail in a step that was built.
            ExecutionError::Step { .. } | ExecutionError::Setup(_) => ErrorKind::Peer,
            ExecutionError::Plan(_) => ErrorKind::Model,
            _ => ErrorKind::Misuse,
        };
        let fix = match &error {
            ExecutionError::NoKeys => {
                let fix = format!("predict and prepare without {}", Field::KEYS);
                return Self::new(kind, error.to_string()).fix(fix);
            }
            ExecutionError::TooMuchAhead { .. } => {
                "predict without preparing: material is then made as it is used"
            }
            ExecutionError::OtherKeys { .. }
            | ExecutionError::DamagedKeys { .. }
            | ExecutionError::KeysVersion { .. } => "make keys for this model with lanner keygen",
            _ => "",
        };
        Self::new(kind, error.to_string()).at(place).fix(fix)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        from_store(&error)
    }
}

fn from_store(error: &StoreError) -> Error {
    if let StoreError::OtherProcess(error) = error {
        return (*error).into();
    }
    let fix = match error {
        StoreError::Full { .. } => {
            "use the stored material, or revoke pairings that are not needed (lanner pairings)".into()
        }
        StoreError::File { source, .. } if source.kind() == ErrorKindOfDisk::StorageFull => {
            "free some space; the stored material is intact".into()
        }
        #[cfg(not(target_family = "wasm"))]
        StoreError::Index { path, .. } => {
            let folder = path.parent().unwrap_or(path).display();
            format!(
                "free some space if the disk is full; else remove {folder}: what is kept there is lost, and made anew"
            )
        }
        StoreError::Key { path } => {
            let path = path.display();
            format!(
                "remove {path} and the folder material beside it: what is kept there is lost, and made anew"
            )
        }
        StoreError::Version { .. } => {
            "remove the folder material in the state directory: what is kept there is lost, and made anew"
                .into()
        }
        StoreError::Inherited { .. } => format!(
            "start processes before clients and servers with a state directory, or by spawn, or give each its own directory: {SEVERAL_PROCESSES}"
        ),
        StoreError::NoName { .. } => "give 32 hexadecimal digits, as lanner pairings prints them".into(),
        StoreError::Busy { .. } | StoreError::Damaged { .. } | StoreError::DamagedPairing => {
            "try again".into()
        }
        StoreError::DamagedWeights { .. } => "remove it: the next start makes it anew".into(),
        StoreError::State(NetError::State { fix, .. }) => fix.clone(),
        _ => String::new(),
    };
    let kind = match error {
        StoreError::DamagedWeights { .. } => ErrorKind::Model,
        _ => ErrorKind::Misuse,
    };
    Error::new(kind, error.to_string()).fix(fix)
}

impl From<HandshakeError> for Error {
    fn from(error: HandshakeError) -> Self {
        match &error {
            HandshakeError::Channel(channel) => from_channel(channel),
            HandshakeError::UnknownModel { .. } => Self::new(ErrorKind::Peer, error.to_string())
                .fix("name one of the models that the server printed"),
            HandshakeError::Tls => {
                Self::new(ErrorKind::Transport, "the server speaks TLS, and this client does without").fix(
                    format!(
                        "leave {} out and give {} or {}",
                        Field::INSECURE_PLAINTEXT,
                        Field::PIN,
                        Field::CA
                    ),
                )
            }
            HandshakeError::WrongModel { .. } => Self::new(ErrorKind::Peer, error.to_string())
                .fix("ask the model's owner for the current commitment"),
            HandshakeError::Version { .. } | HandshakeError::Parameters => {
                Self::new(ErrorKind::Peer, error.to_string()).fix("use the same release on both sides")
            }
            _ => Self::new(ErrorKind::Peer, error.to_string()),
        }
    }
}

impl From<ChannelError> for Error {
    fn from(error: ChannelError) -> Self {
        from_channel(&error)
    }
}

impl From<OtherProcess> for Error {
    fn from(error: OtherProcess) -> Self {
        Self::new(ErrorKind::Misuse, error.to_string())
            .fix(format!("make a new one in each process: {SEVERAL_PROCESSES}"))
    }
}

/// Where to read on.
const SEVERAL_PROCESSES: &str = "docs/how-to/use-several-processes.md";

fn from_channel(error: &ChannelError) -> Error {
    match error {
        ChannelError::Refused(refusal) => refused(*refusal),
        ChannelError::OtherProcess(error) => (*error).into(),
        ChannelError::Unexpected { .. } | ChannelError::Malformed { .. } => {
            Error::new(ErrorKind::Peer, format!("the peer sent an unexpected message: {error}"))
                .fix("use the same release on both sides")
        }
        ChannelError::OwnCertificate(what) => own_certificate(what),
        ChannelError::TimedOut => Error::new(ErrorKind::Transport, error.to_string())
            .fix(format!("try again, or raise {}", Field::TIMEOUT)),
        _ => Error::new(ErrorKind::Transport, error.to_string())
            .fix("check that the server is running and try again"),
    }
}

/// A server rejects the client's certificate.
fn own_certificate(what: &str) -> Error {
    let what = format!("the server does not accept the client's certificate: {what}");
    Error::new(ErrorKind::Transport, what).fix(format!(
        "give {} and {} that an authority of the server's {} issued; ask the server's owner for them",
        Field::CERT,
        Field::KEY,
        Field::CLIENT_CA
    ))
}

fn refused(refusal: Refusal) -> Error {
    const SAME_RELEASE: &str = "use the same release on both sides";
    let (what, fix): (_, Cow<'_, str>) = match refusal {
        Refusal::Version => ("the server speaks another wire version", SAME_RELEASE.into()),
        Refusal::Model => (
            "the server does not serve that model, or serves several and none was named",
            format!("pass {} with a name that the server printed", Field::MODEL).into(),
        ),
        Refusal::Parameters => ("the server derives other parameters from the model", SAME_RELEASE.into()),
        Refusal::Busy => (
            "the server is busy: all its sessions, or its memory for material, are in use",
            "try again later".into(),
        ),
        Refusal::Size => ("the server refused a message as too large", SAME_RELEASE.into()),
        Refusal::Material => (
            "the server has no room for material that is made ahead of time",
            "predict without `prepare`, or ask its operator: the server's log says whether a disk is full or a limit is reached".into(),
        ),
        _ => ("the server refused the session", "ask its operator; by design the server sends no reason".into()),
    };
    let kind = if refusal == Refusal::Busy { ErrorKind::Busy } else { ErrorKind::Peer };
    Error::new(kind, what).fix(fix)
}

/// What to do about an address that cannot be listened on, which an option names.
pub(crate) fn elsewhere(option: Field) -> String {
    format!("choose another {option} address, of this machine and with a free port")
}

impl From<NetError> for Error {
    fn from(error: NetError) -> Self {
        let kind = match &error {
            NetError::Address { .. } | NetError::FingerprintText { .. } | NetError::ProxyUrl { .. } => {
                ErrorKind::Misuse
            }
            NetError::Channel(channel) => return from_channel(channel),
            NetError::OwnCertificate(what) => return own_certificate(what),
            NetError::Plaintext => {
                let what = "the server runs without TLS, but this client requires it";
                return Self::new(ErrorKind::Transport, what).fix(format!(
                    "restart the server without {}, or pass it here on a trusted network",
                    Field::INSECURE_PLAINTEXT
                ));
            }
            NetError::Http => {
                return Self::new(ErrorKind::Transport, "a web server answered at this address, not a lanner server")
                    .fix("give the address that `lanner serve` printed; to ask a gateway, open its page or use HTTP");
            }
            _ => ErrorKind::Transport,
        };
        let fix: Cow<'_, str> = match &error {
            NetError::Connect { .. } | NetError::Resolve { .. } => {
                "check the address and that the server is running".into()
            }
            NetError::ProxyUrl { .. } => {
                let none = Field::PROXY.set_to("none");
                format!("give http://NAME:PASSWORD@HOST:PORT, or connect without a proxy by {none}").into()
            }
            NetError::Proxy { .. } => format!(
                "ask your network's administrator to let CONNECT through to the server's port, put your name and password into {} or HTTPS_PROXY \
                 if the proxy wants them, or connect directly with {}",
                Field::PROXY,
                Field::PROXY.set_to("none")
            )
            .into(),
            NetError::Listen { .. } => elsewhere(Field::LISTEN).into(),
            NetError::File { .. } => "check the file: certificates and keys are read in PEM form".into(),
            NetError::WrongPin { .. } => {
                "ask the server's owner for its fingerprint; do not accept another one".into()
            }
            NetError::Certificate(_) => format!("check {} and the server's name", Field::CA).into(),
            NetError::SelfIssued => format!(
                "give {} with the server's fingerprint in place of {}, or have the server show a certificate that the authority issued",
                Field::PIN,
                Field::CA
            )
            .into(),
            NetError::Tls(what) if what.starts_with("the peer ") => {
                "check that HOST:PORT is a lanner server's address, as `lanner serve` printed it".into()
            }
            NetError::Term(_) => "ask its owner to renew it, and check this machine's clock".into(),
            NetError::HandshakeTimedOut { .. } | NetError::HandshakeClosed => {
                "check that the address is a lanner server's".into()
            }
            NetError::Identity { fix, .. } | NetError::State { fix, .. } => fix.into(),
            _ => "".into(),
        };
        Self::new(kind, error.to_string()).fix(fix)
    }
}
