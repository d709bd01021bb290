/// One of the two: the client owns the data, the server the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The data owner.
    Client,
    /// The model owner.
    Server,
}

impl Party {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}
