//! Every way to change one message of an honest run.

use lanner_primitives::{Prg, Seed};
use lanner_wire::Kind;

use crate::script::{End, Frame, bytes_of};
use crate::session::Conversation;
use crate::verdict::{Content, Verdict, content};

/// A way to change message `i` of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A kind that no message has.
    WrongKind,
    /// One byte less.
    Shorter,
    /// One byte more.
    Longer,
    /// No byte at all.
    Empty,
    /// A header that claims the longest message there is, and nothing behind it.
    HugeLength,
    /// A refusal in its place.
    Refusal,
    /// The message a second time.
    Twice,
    /// The message left out.
    Omitted,
    /// The next message before it.
    Swapped,
    /// The message never comes.
    Silence,
    /// Only its first half comes.
    SilenceWithin,
    /// The connection ends before it.
    Departure,
    /// The connection ends in its header.
    DepartureInHeader,
    /// The connection ends in its middle.
    DepartureWithin,
    /// The right length, other bytes.
    Content(Content),
    /// Its first packed value is the modulus that it must be below.
    AtModulus,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::WrongKind,
        Self::Shorter,
        Self::Longer,
        Self::Empty,
        Self::HugeLength,
        Self::Refusal,
        Self::Twice,
        Self::Omitted,
        Self::Swapped,
        Self::Silence,
        Self::SilenceWithin,
        Self::Departure,
        Self::DepartureInHeader,
        Self::DepartureWithin,
        Self::Content(Content::Zeros),
        Self::Content(Content::Ones),
        Self::Content(Content::Noise),
        Self::Content(Content::Flip),
        Self::AtModulus,
    ];
}

/// A changed run: what the peer says, how it ends, and how its victim must end.
pub struct Attack {
    /// Everything that the peer sends.
    pub bytes: Vec<u8>,
    /// What it does after that.
    pub end: End,
    /// What its victim makes of it.
    pub verdict: Verdict,
    /// Whether messages of the run are missing at its end.
    pub is_cut: bool,
}

impl Attack {
    /// Changes message `index` of what a party of `conversation` said; none if the mutation does not apply to it.
    #[must_use]
    pub fn on(
        frames: &[Frame],
        index: usize,
        mutation: Mutation,
        conversation: &Conversation,
    ) -> Option<Self> {
        let place = Place { frames, index };
        match mutation {
            Mutation::Content(change) => place.with_content(change, conversation),
            Mutation::AtModulus => place.with_modulus(conversation),
            _ => place
                .with_another_header(mutation)
                .or_else(|| place.with_another_order(mutation))
                .or_else(|| place.with_an_end(mutation)),
        }
    }
}

/// A message among those of a run.
struct Place<'a> {
    frames: &'a [Frame],
    index: usize,
}

impl Place<'_> {
    fn frame(&self) -> &Frame {
        &self.frames[self.index]
    }

    /// The run up to the message, then these bytes.
    fn instead(&self, bytes: &[u8], end: End, verdict: Verdict) -> Attack {
        let bytes = [&bytes_of(&self.frames[..self.index]), bytes].concat();
        Attack { bytes, end, verdict, is_cut: true }
    }

    /// The whole run, with another payload in the message.
    fn changed(&self, payload: Vec<u8>, verdict: Verdict) -> Attack {
        let changed = Frame { kind: self.frame().kind, payload }.to_bytes();
        let after = bytes_of(&self.frames[self.index + 1..]);
        Attack { is_cut: false, ..self.instead(&[changed, after].concat(), End::Silence, verdict) }
    }

    fn with_another_header(&self, mutation: Mutation) -> Option<Attack> {
        let Frame { kind, payload } = self.frame();
        let verdict = Verdict::Unexpected(*kind);
        let instead = |bytes: &[u8], verdict| Some(self.instead(bytes, End::Silence, verdict));
        match mutation {
            Mutation::WrongKind => {
                instead(&Frame { kind: Kind(0x7777), payload: payload.clone() }.to_bytes(), verdict)
            }
            Mutation::HugeLength => instead(&Frame::header(*kind, u32::MAX), verdict),
            Mutation::Refusal => instead(&Frame::new(0, [6]).to_bytes(), Verdict::Refused),
            Mutation::Shorter => Some(self.changed(payload.split_last()?.1.to_vec(), verdict)),
            Mutation::Longer => Some(self.changed([payload, &[0][..]].concat(), verdict)),
            Mutation::Empty if !payload.is_empty() => Some(self.changed(Vec::new(), verdict)),
            _ => None,
        }
    }

    fn with_another_order(&self, mutation: Mutation) -> Option<Attack> {
        let mut told = self.frames.to_vec();
        match mutation {
            Mutation::Twice => told.insert(self.index, self.frame().clone()),
            Mutation::Omitted => drop(told.remove(self.index)),
            Mutation::Swapped if self.index + 1 < told.len() => told.swap(self.index, self.index + 1),
            _ => return None,
        }
        let verdict = out_of_order(self.frames, &told);
        let is_cut = told.len() < self.frames.len();
        Some(Attack { bytes: bytes_of(&told), end: End::Silence, verdict, is_cut })
    }

    fn with_an_end(&self, mutation: Mutation) -> Option<Attack> {
        let bytes = self.frame().to_bytes();
        let (header, half) = (&bytes[..3], &bytes[..usize::midpoint(bytes.len(), 6)]);
        let within = half.len() < bytes.len();
        match mutation {
            Mutation::Silence => Some(self.instead(&[], End::Silence, Verdict::TimedOut)),
            Mutation::SilenceWithin if within => Some(self.instead(half, End::Silence, Verdict::TimedOut)),
            Mutation::Departure => Some(self.instead(&[], End::Departure, Verdict::Disconnected)),
            Mutation::DepartureInHeader => Some(self.instead(header, End::Departure, Verdict::Disconnected)),
            Mutation::DepartureWithin if within => {
                Some(self.instead(half, End::Departure, Verdict::Disconnected))
            }
            _ => None,
        }
    }

    fn with_content(&self, change: Content, conversation: &Conversation) -> Option<Attack> {
        let length = self.frame().payload.len();
        let mut payload = match change {
            Content::Zeros | Content::Noise => vec![0; length],
            Content::Ones => vec![0xff; length],
            Content::Flip => self.frame().payload.clone(),
        };
        match change {
            Content::Noise => Prg::new(Seed::from_bytes([7; 16])).fill_bytes(&mut payload),
            Content::Flip => *payload.get_mut(length / 2)? ^= 0x10,
            Content::Zeros | Content::Ones => {}
        }
        let has_modulus = Packed::of(self, conversation).is_some();
        let before_trees = self.frames[self.index..].iter().any(|frame| frame.kind.0 == 0x18);
        Some(self.changed(payload, content(self.frame().kind, has_modulus, before_trees, change)?))
    }

    fn with_modulus(&self, conversation: &Conversation) -> Option<Attack> {
        let payload = Packed::of(self, conversation)?.at_modulus(&self.frame().payload);
        Some(self.changed(payload, Verdict::Malformed))
    }
}

/// How a party that waits for `honest` ends when it is told `told`, each well-formed, and then nothing.
fn out_of_order(honest: &[Frame], told: &[Frame]) -> Verdict {
    let differs =
        |(due, got): &(&Frame, &Frame)| (due.kind, due.payload.len()) != (got.kind, got.payload.len());
    let mut moved = false;
    // A batch of transfers whose corrections or proof were moved fails with its proof, unless a header is wrong before; silent trees fail with their message.
    let mut is_moved = |(due, got): &(&Frame, &Frame)| {
        moved |= matches!(due.kind.0, 0x14 | 0x16) && due.payload != got.payload;
        (moved && due.kind.0 == 0x16) || (due.kind.0 == 0x18 && due.payload != got.payload)
    };
    let end = honest.iter().zip(told).take_while(|pair| !differs(pair)).find(&mut is_moved);
    match honest.iter().zip(told).find(differs) {
        _ if end.is_some() => Verdict::Dishonest,
        Some((due, _)) => Verdict::Unexpected(due.kind),
        None if told.len() < honest.len() => Verdict::TimedOut,
        None => Verdict::Unnoticed,
    }
}

/// Where a message's packed values begin, and what they must be below.
struct Packed {
    /// Bytes before them.
    skip: usize,
    bits: usize,
    modulus: u64,
}

impl Packed {
    /// The packed values of a message; none if it has none with a modulus.
    fn of(place: &Place<'_>, conversation: &Conversation) -> Option<Self> {
        let kind = place.frame().kind;
        let before = place.frames[..place.index].iter().filter(|frame| frame.kind == kind).count();
        let (skip, modulus) = match kind.0 {
            // Keys for no rotation are a seed alone.
            0x31 if place.frame().payload.len() == 16 => return None,
            0x30 | 0x31 => (16, conversation.ciphertexts()?.limb(kind.0, before)?),
            0x40 | 0x41 | 0x43 => (0, conversation.ciphertexts()?.limb(kind.0, before)?),
            0x17 | 0x61 | 0x62 => (0, conversation.prime(kind.0, before)?),
            _ => return None,
        };
        Some(Self { skip, bits: (u64::BITS - modulus.leading_zeros()) as usize, modulus })
    }

    /// The message with the modulus as its first value.
    fn at_modulus(&self, payload: &[u8]) -> Vec<u8> {
        let mut changed = payload.to_vec();
        for bit in 0..self.bits {
            let byte = &mut changed[self.skip + bit / 8];
            *byte = *byte & !(1 << (bit % 8)) | (((self.modulus >> bit & 1) as u8) << (bit % 8));
        }
        changed
    }
}
