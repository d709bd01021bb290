//! What the parties keep, in bytes.

use lanner_bfv::Parameters;

/// Bytes that the parties keep, to within small change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The server's encoded weights, once a model and shared by all sessions.
    pub model: u64,
    /// The server's evaluation keys, once a session.
    pub session: u64,
    /// The client's material of each prepared prediction.
    pub client_material: u64,
    /// The server's material of each prepared prediction.
    pub server_material: u64,
    /// The server's, while a layer is computed: values, rotated inputs and partial sums, messages.
    pub working: u64,
    /// Where elements lie in ciphertexts: each party's, once a model.
    pub layouts: u64,
    /// The client's, while a layer is computed.
    pub client_working: u64,
}

impl Memory {
    /// What one client more takes of a server, with one prediction prepared and one layer in work.
    #[must_use]
    pub const fn client(self) -> u64 {
        self.session + self.server_material + self.working
    }

    /// What a client holds for a session with one prediction.
    #[must_use]
    pub const fn of_client(self) -> u64 {
        self.layouts.saturating_add(self.client_material).saturating_add(self.client_working)
    }

    /// What a server holds for a model and one client.
    #[must_use]
    pub const fn of_server(self) -> u64 {
        self.layouts.saturating_add(self.model).saturating_add(self.client())
    }

    /// Both, of which one is in work at a time.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self {
            model: self.model + other.model,
            session: self.session + other.session,
            client_material: self.client_material + other.client_material,
            server_material: self.server_material + other.server_material,
            working: self.working.max(other.working),
            layouts: self.layouts + other.layouts,
            client_working: self.client_working.max(other.client_working),
        }
    }
}

/// Bytes of an element of a ring.
pub const WORD: u64 = 8;

/// Bytes of a label of a circuit's wire.
pub const LABEL: u64 = 16;

/// Bytes of one residue of a polynomial.
#[must_use]
pub fn limb(parameters: &Parameters) -> u64 {
    parameters.degree() as u64 * WORD
}
