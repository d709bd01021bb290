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
    /// The client's material of a prediction that is made run by run: that of the run with the most.
    pub client_run: u64,
    /// The server's.
    pub server_run: u64,
    /// The server's, while a layer is computed: values, rotated inputs and partial sums, messages.
    pub working: u64,
    /// Where elements lie in ciphertexts: each party's, once a model.
    pub layouts: u64,
    /// The client's, while a layer is computed.
    pub client_working: u64,
}

impl Memory {
    /// Whether a prediction that was not prepared is made run by run, since either party would hold more than 1 GiB of material otherwise. One of
    /// a single run is made as a whole.
    #[must_use]
    pub const fn is_by_runs(self) -> bool {
        let is_large = self.client_material > AHEAD || self.server_material > AHEAD;
        let has_runs = self.client_run < self.client_material || self.server_run < self.server_material;
        is_large && has_runs
    }

    /// The client's material and the server's, of a prediction that was not prepared.
    #[must_use]
    pub const fn of_unprepared(self) -> [u64; 2] {
        if self.is_by_runs() {
            [self.client_run, self.server_run]
        } else {
            [self.client_material, self.server_material]
        }
    }

    /// What one client more takes of a server, with one prediction and one layer in work.
    #[must_use]
    pub const fn client(self) -> u64 {
        let [_, material] = self.of_unprepared();
        self.session.saturating_add(material).saturating_add(self.working)
    }

    /// What a client holds for a session with one prediction.
    #[must_use]
    pub const fn of_client(self) -> u64 {
        let [material, _] = self.of_unprepared();
        self.layouts.saturating_add(material).saturating_add(self.client_working)
    }

    /// The same where the prediction is prepared, and so made as a whole.
    #[must_use]
    pub const fn of_client_prepared(self) -> u64 {
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
            client_run: self.client_run.max(other.client_run),
            server_run: self.server_run.max(other.server_run),
            working: self.working.max(other.working),
            layouts: self.layouts + other.layouts,
            client_working: self.client_working.max(other.client_working),
        }
    }
}

/// Bytes of material that either party holds of a prediction that was not prepared: of more than these it makes one run after the other, just
/// before it is used.
pub const AHEAD: u64 = 1 << 30;

/// Bytes of an element of a ring.
pub const WORD: u64 = 8;

/// Bytes of a label of a circuit's wire.
pub const LABEL: u64 = 16;

/// Bytes of one residue of a polynomial.
#[must_use]
pub fn limb(parameters: &Parameters) -> u64 {
    parameters.degree() as u64 * WORD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_prepared_counts_whole_or_by_its_largest_run() {
        let memory = |material: u64| Memory {
            client_material: material,
            server_material: 5,
            client_run: 7,
            server_run: 3,
            ..Memory::default()
        };
        assert_eq!((memory(AHEAD).is_by_runs(), memory(AHEAD).of_unprepared()), (false, [AHEAD, 5]));
        assert_eq!((memory(AHEAD + 1).is_by_runs(), memory(AHEAD + 1).of_unprepared()), (true, [7, 3]));
        assert_eq!([memory(AHEAD).of_client(), memory(AHEAD + 1).of_client()], [AHEAD, 7]);
        assert_eq!(memory(AHEAD + 1).of_client_prepared(), AHEAD + 1);
        assert_eq!([memory(AHEAD).of_server(), memory(AHEAD + 1).of_server()], [5, 3]);
        let one_run = Memory { client_run: AHEAD + 1, server_run: 5, ..memory(AHEAD + 1) };
        assert!(!one_run.is_by_runs());
        let beside = memory(1).beside(Memory { client_run: 9, ..Memory::default() });
        assert_eq!([beside.client_run, beside.server_run], [9, 3]);
    }
}
