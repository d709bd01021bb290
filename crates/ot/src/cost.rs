/// What a protocol of this crate sends, known from public counts alone: payloads, without the channel's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Payload bytes that the sender of the transfers sends.
    pub sender_bytes: u64,
    /// Messages that the sender sends.
    pub sender_messages: u64,
    /// Payload bytes that the receiver sends.
    pub receiver_bytes: u64,
    /// Messages that the receiver sends.
    pub receiver_messages: u64,
}

impl Cost {
    /// The cost of one protocol after another.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            sender_bytes: self.sender_bytes + other.sender_bytes,
            sender_messages: self.sender_messages + other.sender_messages,
            receiver_bytes: self.receiver_bytes + other.receiver_bytes,
            receiver_messages: self.receiver_messages + other.receiver_messages,
        }
    }
}
