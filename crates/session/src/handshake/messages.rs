//! The messages of the handshake.

use std::fmt;

use lanner_wire::{Decode, DecodeError, Encode, Reader, Writer};

use super::{HandshakeError, WIRE_VERSION, hex};

/// Names a session in both parties' logs; random, so that it tells nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(pub(super) [u8; 16]);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which part a party plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server,
}

impl Role {
    const fn code(self) -> u8 {
        match self {
            Self::Client => 1,
            Self::Server => 2,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// A party's first message.
pub(super) struct Hello {
    pub(super) role: Role,
    pub(super) nonce: [u8; 32],
}

impl Encode for Hello {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(MAGIC);
        writer.u32(WIRE_VERSION);
        writer.u8(self.role.code());
        writer.bytes(&self.nonce);
    }
}

impl Hello {
    /// Checks the peer's first message. Only its first twelve bytes mean the same in every version.
    pub(super) fn check(bytes: &[u8], own_role: Role) -> Result<(), HandshakeError> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(MAGIC.len()) != Ok(MAGIC) {
            return Err(HandshakeError::Stranger);
        }
        let theirs = reader.u32()?;
        if theirs != WIRE_VERSION {
            return Err(HandshakeError::Version { ours: WIRE_VERSION, theirs });
        }
        let role = reader.u8()?;
        reader.array::<32>()?;
        reader.finish()?;
        if role == own_role.code() {
            return Err(HandshakeError::Role { role: own_role.name() });
        }
        let known = role == Role::Client.code() || role == Role::Server.code();
        if known { Ok(()) } else { Err(DecodeError::Invalid { what: "role" }.into()) }
    }
}

/// Which model a client wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelRequest {
    /// Its name; empty for the only one that a server serves.
    pub name: String,
    /// The commitment that it must have.
    pub pin: Option<[u8; 32]>,
}

impl Encode for ModelRequest {
    fn encode(&self, writer: &mut Writer) {
        writer.text(&self.name);
        writer.bool(self.pin.is_some());
        if let Some(pin) = &self.pin {
            writer.bytes(pin);
        }
    }
}

impl Decode for ModelRequest {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let name = reader.text(NAME_LIMIT)?.to_owned();
        let pin = if reader.bool()? { Some(reader.array()?) } else { None };
        Ok(Self { name, pin })
    }
}

/// A model that a server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEntry {
    /// The name to ask for.
    pub name: String,
    /// The commitment to pin.
    pub commitment: [u8; 32],
}

impl Encode for ModelEntry {
    fn encode(&self, writer: &mut Writer) {
        writer.text(&self.name);
        writer.bytes(&self.commitment);
    }
}

impl Decode for ModelEntry {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { name: reader.text(NAME_LIMIT)?.to_owned(), commitment: reader.array()? })
    }
}

/// The models of a server.
pub(super) struct Models(pub(super) Vec<ModelEntry>);

impl Encode for Models {
    fn encode(&self, writer: &mut Writer) {
        writer.count(self.0.len());
        self.0.iter().for_each(|entry| entry.encode(writer));
    }
}

impl Decode for Models {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.count(MODEL_LIMIT)?;
        (0..count).map(|_| ModelEntry::decode(reader)).collect::<Result<_, _>>().map(Self)
    }
}

/// What the server grants.
pub(super) struct Welcome {
    pub(super) model: ModelEntry,
    pub(super) parameters: [u8; 32],
    pub(super) id: SessionId,
    pub(super) manifest: Vec<u8>,
}

impl Encode for Welcome {
    fn encode(&self, writer: &mut Writer) {
        self.model.encode(writer);
        writer.bytes(&self.parameters);
        writer.bytes(&self.id.0);
        writer.prefixed(&self.manifest);
    }
}

impl Decode for Welcome {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            model: ModelEntry::decode(reader)?,
            parameters: reader.array()?,
            id: SessionId(reader.array()?),
            manifest: reader.prefixed(MANIFEST_LIMIT)?.to_vec(),
        })
    }
}

const MAGIC: &[u8] = b"lanner\r\n";
/// Longest Hello of any version.
pub(super) const HELLO_LIMIT: usize = 1024;
/// Bytes of a model's name.
pub(super) const NAME_LIMIT: usize = 256;
/// Models that a server lists.
pub(super) const MODEL_LIMIT: usize = 1024;
/// Bytes of a public manifest.
pub const MANIFEST_LIMIT: usize = 4 << 20;
pub(super) const REQUEST_LIMIT: usize = 4 + NAME_LIMIT + 1 + 32;
pub(super) const MODELS_LIMIT: usize = 4 + MODEL_LIMIT * (4 + NAME_LIMIT + 32);
pub(super) const WELCOME_LIMIT: usize = 4 + NAME_LIMIT + 32 + 32 + 16 + 4 + MANIFEST_LIMIT;

#[cfg(test)]
mod tests {
    use super::*;

    fn welcome() -> Welcome {
        Welcome {
            model: ModelEntry { name: "m".into(), commitment: [1; 32] },
            parameters: [2; 32],
            id: SessionId([3; 16]),
            manifest: b"{}".to_vec(),
        }
    }

    /// Every truncation, extension and changed byte of a message is refused or decodes to what encodes to it.
    fn survives_mutation<T: Encode + Decode>(value: &T) {
        let bytes = value.to_bytes();
        assert_eq!(T::from_bytes(&bytes).unwrap().to_bytes(), bytes);
        for end in 0..bytes.len() {
            assert!(T::from_bytes(&bytes[..end]).is_err());
        }
        assert!(T::from_bytes(&[bytes.as_slice(), &[0]].concat()).is_err());
        for position in 0..bytes.len() {
            for value in 0..=255 {
                let mut mutated = bytes.clone();
                mutated[position] = value;
                assert!(
                    T::from_bytes(&mutated).is_ok_and(|v| v.to_bytes() == mutated)
                        || T::from_bytes(&mutated).is_err()
                );
            }
        }
    }

    #[test]
    fn decoders_survive_mutation() {
        survives_mutation(&welcome());
        survives_mutation(&ModelRequest { name: "digits".into(), pin: Some([7; 32]) });
        survives_mutation(&ModelRequest::default());
        survives_mutation(&Models(vec![welcome().model, welcome().model]));
    }

    #[test]
    fn a_hello_is_checked_for_protocol_version_and_role() {
        let hello = Hello { role: Role::Client, nonce: [5; 32] }.to_bytes();
        assert!(Hello::check(&hello, Role::Server).is_ok());
        assert!(matches!(Hello::check(&hello, Role::Client), Err(HandshakeError::Role { role: "client" })));
        assert!(matches!(Hello::check(b"GET / HTTP/1.1", Role::Server), Err(HandshakeError::Stranger)));
        let mut newer = hello.clone();
        newer[8] = 9;
        newer.extend([1; 100]);
        assert!(matches!(
            Hello::check(&newer, Role::Server),
            Err(HandshakeError::Version { ours: WIRE_VERSION, theirs: 9 })
        ));
        for end in 0..hello.len() {
            assert!(Hello::check(&hello[..end], Role::Server).is_err());
        }
    }

    #[test]
    fn the_limits_admit_the_longest_messages() {
        let name = "x".repeat(NAME_LIMIT);
        let request = ModelRequest { name: name.clone(), pin: Some([0; 32]) };
        assert_eq!(request.to_bytes().len(), REQUEST_LIMIT);
        let longest = Welcome {
            model: ModelEntry { name, commitment: [0; 32] },
            manifest: vec![0; MANIFEST_LIMIT],
            ..welcome()
        };
        assert_eq!(longest.to_bytes().len(), WELCOME_LIMIT);
        assert!(Welcome::from_bytes(&longest.to_bytes()).is_ok());
        let over = Welcome { manifest: vec![0; MANIFEST_LIMIT + 1], ..welcome() };
        assert!(Welcome::from_bytes(&over.to_bytes()).is_err());
    }
}
