//! Which clients may go on, where a model's clients are checked: one prediction of a client at a time, and none after as many as it may fail.
//!
//! A client that is caught learns, each time, a little of the weights by being caught or not. It shows a certificate, and what is known of it is kept by that, on disk: another
//! session of the client's waits until the verdict on its prediction is there, and one that began before its client was convicted ends.

use std::num::NonZeroU32;
use std::path::PathBuf;

use lanner_net::Fingerprint;
use lanner_store::{Convictions, StoreError, Turn};
use thiserror::Error;
use tracing::warn;

use crate::executor::ExecutionError;

/// What is known of clients, by certificate, and what becomes of those that cheat.
pub struct Bans {
    convictions: Convictions,
    after: NonZeroU32,
}

/// A session's client.
pub(super) struct Standing<'a> {
    bans: &'a Bans,
    client: Fingerprint,
    /// How often it was convicted when the session first asked.
    at_first: Option<u64>,
}

/// A client with this certificate has failed a check that no honest client fails, and is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Convicted {
    /// As often as it may.
    #[error("the client is banned: it failed a check that no honest client fails, {times} times in all")]
    Banned {
        /// How often.
        times: u64,
    },
    /// In another session, since this one began.
    #[error("the client failed a check that no honest client fails in another session, so this one ends")]
    Elsewhere,
}

impl Bans {
    /// What is known in a state directory; a client is banned that is convicted so often.
    #[must_use]
    pub fn new(state: impl Into<PathBuf>, after: NonZeroU32) -> Self {
        Self { convictions: Convictions::new(state), after }
    }

    /// The client with a certificate, of a session that begins.
    pub(super) const fn of(&self, client: Fingerprint) -> Standing<'_> {
        Standing { bans: self, client, at_first: None }
    }
}

impl<'a> Standing<'a> {
    /// Answers a request in the client's turn: no other prediction of its own has a verdict meanwhile.
    ///
    /// # Errors
    /// [`Convicted`] if the client may not go on; a disk's error; that of `answer`, where it is one of the client's cheating after it was written down.
    pub(super) fn in_turn<E: From<Convicted> + From<StoreError> + From<ExecutionError>>(
        &mut self,
        answer: impl FnOnce() -> Result<(), ExecutionError>,
    ) -> Result<(), E> {
        let turn = self.turn()??;
        let answered = answer();
        if answered.as_ref().is_err_and(ExecutionError::is_dishonest) {
            warn!(certificate = %self.client, "a client cheated");
            if let Err(error) = turn.convict() {
                warn!(certificate = %self.client, %error, "cannot write down that a client cheated: it counts until this process ends");
            }
        }
        Ok(answered?)
    }

    fn turn(&mut self) -> Result<Result<Turn<'a>, Convicted>, StoreError> {
        let turn = self.bans.convictions.turn(self.client)?;
        let times = turn.convictions();
        let at_first = *self.at_first.get_or_insert(times);
        Ok(match times {
            times if times >= self.bans.after.get().into() => Err(Convicted::Banned { times }),
            times if times != at_first => Err(Convicted::Elsewhere),
            _ => Ok(turn),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::error::Error;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use lanner_step::ProtocolError;

    use super::*;

    type Answered = Result<(), Box<dyn Error + Send + Sync>>;

    fn client(number: u8) -> Fingerprint {
        format!("sha256:{}", format!("{number:02x}").repeat(32)).parse().unwrap()
    }

    fn cheats() -> Result<(), ExecutionError> {
        Err(ExecutionError::Setup(ProtocolError::Cheating))
    }

    fn convicted(answered: Answered) -> Option<Convicted> {
        answered.err().and_then(|error| error.downcast_ref().copied())
    }

    fn bans(state: &tempfile::TempDir, after: u32) -> Bans {
        Bans::new(state.path().join("state"), NonZeroU32::new(after).unwrap())
    }

    #[test]
    fn a_convicted_client_s_other_predictions_get_no_verdict() {
        let state = tempfile::tempdir().unwrap();
        let bans = bans(&state, 1);
        let (mut one, mut beside, mut other) = (bans.of(client(1)), bans.of(client(1)), bans.of(client(2)));
        let (entered, begun) = channel();
        let (tell, told) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let caught: Answered = one.in_turn(|| {
                    entered.send(()).unwrap();
                    told.recv().unwrap();
                    cheats()
                });
                assert!(caught.unwrap_err().downcast_ref::<ExecutionError>().unwrap().is_dishonest());
            });
            begun.recv().unwrap();
            let (done, waits) = channel();
            scope.spawn(move || done.send(convicted(beside.in_turn(|| Ok(())))).unwrap());
            // It waits for the verdict.
            assert!(waits.recv_timeout(Duration::from_millis(50)).is_err());
            tell.send(()).unwrap();
            assert_eq!(waits.recv().unwrap(), Some(Convicted::Banned { times: 1 }));
        });
        other.in_turn::<Box<dyn Error + Send + Sync>>(|| Ok(())).unwrap();
        // The server starts again.
        let again = self::bans(&state, 1);
        assert_eq!(convicted(again.of(client(1)).in_turn(|| Ok(()))), Some(Convicted::Banned { times: 1 }));
        assert!(again.of(client(2)).in_turn::<Box<dyn Error + Send + Sync>>(|| Ok(())).is_ok());
    }

    #[test]
    fn a_client_that_may_fail_again_begins_a_session_again() {
        let state = tempfile::tempdir().unwrap();
        let bans = bans(&state, 2);
        let (mut one, mut beside) = (bans.of(client(1)), bans.of(client(1)));
        beside.in_turn::<Box<dyn Error + Send + Sync>>(|| Ok(())).unwrap();
        assert_eq!(convicted(one.in_turn(cheats)), None);
        assert_eq!(convicted(beside.in_turn(|| unreachable!())), Some(Convicted::Elsewhere));
        assert_eq!(convicted(one.in_turn(|| unreachable!())), Some(Convicted::Elsewhere));
        let mut later = bans.of(client(1));
        later.in_turn::<Box<dyn Error + Send + Sync>>(|| Ok(())).unwrap();
        assert_eq!(convicted(later.in_turn(cheats)), None);
        assert_eq!(convicted(later.in_turn(|| unreachable!())), Some(Convicted::Banned { times: 2 }));
    }

    #[test]
    fn other_errors_convict_nobody() {
        let state = tempfile::tempdir().unwrap();
        let bans = bans(&state, 1);
        let mut one = bans.of(client(1));
        let gone =
            || Err(ExecutionError::Setup(ProtocolError::Channel(lanner_wire::ChannelError::Disconnected)));
        assert!(one.in_turn::<Box<dyn Error + Send + Sync>>(gone).is_err());
        assert!(one.in_turn::<Box<dyn Error + Send + Sync>>(|| Ok(())).is_ok());
    }
}
