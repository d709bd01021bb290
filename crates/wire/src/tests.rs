//! Laws of the reader and the writer, and what mutated bytes do.

use crate::{ChannelError, Decode, DecodeError, Encode, Reader, Writer};

/// One field of each sort.
#[derive(Debug, PartialEq)]
struct Sample {
    flag: bool,
    small: u8,
    medium: u16,
    word: u64,
    wide: u128,
    name: String,
    blob: Vec<u8>,
    values: Vec<u64>,
}

const LIMIT: usize = 64;
const BITS: u32 = 19;

impl Encode for Sample {
    fn encode(&self, writer: &mut Writer) {
        writer.bool(self.flag);
        writer.u8(self.small);
        writer.u16(self.medium);
        writer.u64(self.word);
        writer.u128(self.wide);
        writer.text(&self.name);
        writer.prefixed(&self.blob);
        writer.count(self.values.len());
        writer.packed(&self.values, BITS);
    }
}

impl Decode for Sample {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            flag: reader.bool()?,
            small: reader.u8()?,
            medium: reader.u16()?,
            word: reader.u64()?,
            wide: reader.u128()?,
            name: reader.text(LIMIT)?.to_owned(),
            blob: reader.prefixed(LIMIT)?.to_vec(),
            values: {
                let count = reader.count(LIMIT)?;
                reader.packed(count, BITS)?
            },
        })
    }
}

fn sample() -> Sample {
    Sample {
        flag: true,
        small: 7,
        medium: 0x1234,
        word: 0x0102_0304_0506_0708,
        wide: 1 << 100,
        name: "größe".into(),
        blob: vec![9; 5],
        values: vec![1, (1 << BITS) - 1, 0x2_aaaa],
    }
}

#[test]
fn decoding_inverts_encoding() {
    assert_eq!(Sample::from_bytes(&sample().to_bytes()).unwrap(), sample());
}

#[test]
fn fields_are_little_endian_without_padding() {
    let mut writer = Writer::with_capacity(16);
    assert!(writer.is_empty());
    writer.u16(0x1234);
    writer.u32(1);
    writer.bytes(b"ab");
    assert_eq!(writer.len(), 8);
    assert_eq!(writer.into_bytes(), b"\x34\x12\x01\0\0\0ab");
}

#[test]
fn each_truncation_and_extension_is_refused() {
    let bytes = sample().to_bytes();
    for end in 0..bytes.len() {
        let error = Sample::from_bytes(&bytes[..end]).unwrap_err();
        assert!(matches!(error, DecodeError::Truncated { .. }), "{end}: {error}");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(Sample::from_bytes(&longer), Err(DecodeError::Trailing { left: 1 }));
}

#[test]
fn a_mutated_message_is_refused_or_has_one_encoding() {
    let bytes = sample().to_bytes();
    for position in 0..bytes.len() {
        for value in 0..=255 {
            let mut mutated = bytes.clone();
            mutated[position] = value;
            if let Ok(decoded) = Sample::from_bytes(&mutated) {
                assert_eq!(decoded.to_bytes(), mutated);
            }
        }
    }
}

#[test]
fn random_bytes_are_refused_or_have_one_encoding() {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    for length in (0..200).cycle().take(20_000) {
        let bytes: Vec<u8> = (0..length).map(|_| next() & 3).collect();
        if let Ok(decoded) = Sample::from_bytes(&bytes) {
            assert_eq!(decoded.to_bytes(), bytes);
        }
    }
}

#[test]
fn a_length_over_the_limit_is_named() {
    let mut writer = Writer::new();
    writer.u32(u32::MAX);
    let bytes = writer.into_bytes();
    let too_long = DecodeError::TooLong { length: u32::MAX as usize, limit: LIMIT };
    assert_eq!(Reader::new(&bytes).prefixed(LIMIT), Err(too_long));
    assert_eq!(Reader::new(&bytes).count(LIMIT), Err(too_long));
    assert!(Reader::new(&bytes).prefixed(usize::MAX).is_err());
    assert!(Reader::new(&bytes).packed(usize::MAX, 64).is_err());
}

#[test]
fn a_decode_error_becomes_a_malformed_message() {
    let error = ChannelError::from(DecodeError::Invalid { what: "polynomial" });
    assert_eq!(error.to_string(), "malformed polynomial");
}
