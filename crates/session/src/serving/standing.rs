//! Which clients may go on, where a model's clients are checked: one prediction of a client at a time, and none after as many as it may fail.
//!
//! A client that is caught learns, each time, a little of the weights by being caught or not. It shows a certificate, and what is known of it is kept by the key in that, on disk:
//! another session of the client's waits until the verdict on its prediction is there, and one that began before its client was convicted ends. Who shows none cannot be known
//! again: where such clients are let in, as a server's own are, one that is caught ends the service of all of them.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lanner_net::{KeyFingerprint, PeerCertificate};
use lanner_store::{Convictions, StoreError, Turn};
use thiserror::Error;
use tracing::warn;

use crate::executor::ExecutionError;

/// What is known of clients, by the keys of their certificates, and what becomes of those that cheat.
pub struct Bans {
    convictions: Convictions,
    after: NonZeroU32,
    /// Whether a client without a certificate was caught.
    is_over: AtomicBool,
}

/// A session's client.
pub(super) struct Standing<'a> {
    bans: &'a Bans,
    client: Option<PeerCertificate>,
    /// How often it was convicted when the session first asked.
    at_first: Option<u64>,
}

/// A client has failed a check that no honest client fails, and is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Convicted {
    /// As often as it may.
    #[error(
        "the client is banned: with its key, {key}, a check that no honest client fails has failed, {times} times in all"
    )]
    Banned {
        /// The key in its certificate.
        key: KeyFingerprint,
        /// How often.
        times: u64,
    },
    /// In another session, since this one began.
    #[error("the client failed a check that no honest client fails in another session, so this one ends")]
    Elsewhere,
    /// It, or another one, as none of them shows a certificate.
    #[error(
        "a client failed a check that no honest client fails, and clients show no certificates here, so no model of this mode is served any more"
    )]
    Nobody,
}

impl Bans {
    /// What is known in a state directory; a client is banned that is convicted so often.
    #[must_use]
    pub fn new(state: impl Into<PathBuf>, after: NonZeroU32) -> Self {
        Self { convictions: Convictions::new(state), after, is_over: AtomicBool::new(false) }
    }

    /// The client with a certificate, or without, of a session that begins.
    pub(super) const fn of(&self, client: Option<PeerCertificate>) -> Standing<'_> {
        Standing { bans: self, client, at_first: None }
    }
}

impl<'a> Standing<'a> {
    /// Answers a request in the client's turn: no other prediction of its own has a verdict meanwhile. `answer` is given what to call as soon as the client is caught: what that writes
    /// down is durable when it returns.
    ///
    /// # Errors
    /// [`Convicted`] if the client may not go on; [`StoreError::Taken`] if another prediction of its own is still under way after `patience`; a disk's error; that of `answer`, where it is
    /// one of the client's cheating after it was written down.
    pub(super) fn in_turn<E: From<Convicted> + From<StoreError> + From<ExecutionError>>(
        &mut self,
        patience: Duration,
        answer: impl FnOnce(&(dyn Fn() + Sync)) -> Result<(), ExecutionError>,
    ) -> Result<(), E> {
        let Some(client) = self.client else { return self.as_nobody(answer) };
        let turn = self.turn(client.key, patience)??;
        let PeerCertificate { fingerprint: certificate, key } = client;
        let caught = || {
            warn!(%certificate, %key, "a client cheated");
            if let Err(error) = turn.convict(certificate) {
                warn!(%certificate, %key, %error, "cannot write down that a client cheated: it counts until this process ends");
            }
        };
        answered(answer, &caught)
    }

    fn turn(
        &mut self,
        key: KeyFingerprint,
        patience: Duration,
    ) -> Result<Result<Turn<'a>, Convicted>, StoreError> {
        let turn = self.bans.convictions.turn(key, patience)?;
        let times = turn.convictions();
        let at_first = *self.at_first.get_or_insert(times);
        Ok(match times {
            times if times >= self.bans.after.get().into() => Err(Convicted::Banned { key, times }),
            times if times != at_first => Err(Convicted::Elsewhere),
            _ => Ok(turn),
        })
    }

    /// Predictions side by side are answered at once: who lets such clients in trusts them.
    fn as_nobody<E: From<Convicted> + From<ExecutionError>>(
        &self,
        answer: impl FnOnce(&(dyn Fn() + Sync)) -> Result<(), ExecutionError>,
    ) -> Result<(), E> {
        let is_over = &self.bans.is_over;
        if is_over.load(Ordering::SeqCst) {
            return Err(Convicted::Nobody.into());
        }
        let caught = || {
            is_over.store(true, Ordering::SeqCst);
            warn!(
                "a client without a certificate cheated: no model whose clients are checked is served any more"
            );
        };
        answered(answer, &caught)
    }
}

/// Answers a request, and is told once of a client that cheats.
fn answered<E: From<ExecutionError>>(
    answer: impl FnOnce(&(dyn Fn() + Sync)) -> Result<(), ExecutionError>,
    caught: &(dyn Fn() + Sync),
) -> Result<(), E> {
    let is_told = AtomicBool::new(false);
    let tell = || {
        if !is_told.swap(true, Ordering::SeqCst) {
            caught();
        }
    };
    let answered = answer(&tell);
    if answered.as_ref().is_err_and(ExecutionError::is_dishonest) {
        tell();
    }
    Ok(answered?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::error::Error;
    use std::sync::mpsc::channel;
    use std::thread;

    use lanner_net::Fingerprint;
    use lanner_step::ProtocolError;

    use super::*;

    type Answered = Result<(), Box<dyn Error + Send + Sync>>;

    const LONG: Duration = Duration::from_secs(60);

    fn client(number: u8) -> PeerCertificate {
        PeerCertificate { fingerprint: Fingerprint::of(&[number]), key: KeyFingerprint::of(&[number]) }
    }

    fn cheats(_: &(dyn Fn() + Sync)) -> Result<(), ExecutionError> {
        Err(ExecutionError::Setup(ProtocolError::Cheating))
    }

    fn is_honest(standing: &mut Standing<'_>) -> Answered {
        standing.in_turn(LONG, |_| Ok(()))
    }

    fn convicted(answered: Answered) -> Option<Convicted> {
        answered.err().and_then(|error| error.downcast_ref().copied())
    }

    fn banned(number: u8, times: u64) -> Convicted {
        Convicted::Banned { key: client(number).key, times }
    }

    fn bans(state: &tempfile::TempDir, after: u32) -> Bans {
        Bans::new(state.path().join("state"), NonZeroU32::new(after).unwrap())
    }

    #[test]
    fn a_convicted_client_s_other_predictions_get_no_verdict() {
        let state = tempfile::tempdir().unwrap();
        let bans = bans(&state, 1);
        let [mut one, mut beside, mut other] = [1, 1, 2].map(|number| bans.of(Some(client(number))));
        let (entered, begun) = channel();
        let (tell, told) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let caught: Answered = one.in_turn(LONG, |caught| {
                    entered.send(()).unwrap();
                    told.recv().unwrap();
                    cheats(caught)
                });
                assert!(caught.unwrap_err().downcast_ref::<ExecutionError>().unwrap().is_dishonest());
            });
            begun.recv().unwrap();
            let (done, waits) = channel();
            scope.spawn(move || done.send(convicted(is_honest(&mut beside))).unwrap());
            // It waits for the verdict.
            assert!(waits.recv_timeout(Duration::from_millis(50)).is_err());
            tell.send(()).unwrap();
            assert_eq!(waits.recv().unwrap(), Some(banned(1, 1)));
        });
        is_honest(&mut other).unwrap();
        // The server starts again.
        let again = self::bans(&state, 1);
        assert_eq!(convicted(is_honest(&mut again.of(Some(client(1))))), Some(banned(1, 1)));
        is_honest(&mut again.of(Some(client(2)))).unwrap();
    }

    #[test]
    fn another_form_of_a_certificate_is_the_same_client() {
        let state = tempfile::tempdir().unwrap();
        let bans = bans(&state, 1);
        let form = PeerCertificate { fingerprint: Fingerprint::of(b"another form"), ..client(1) };
        assert_eq!(convicted(bans.of(Some(client(1))).in_turn(LONG, cheats)), None);
        assert_eq!(convicted(is_honest(&mut bans.of(Some(form)))), Some(banned(1, 1)));
    }

    #[test]
    fn a_conviction_is_there_while_the_rest_of_a_request_goes_on() {
        let state = tempfile::tempdir().unwrap();
        let bans = bans(&state, 1);
        let written = || {
            let directory = state.path().join("state/convictions");
            let file = std::fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
            std::fs::read_to_string(file).unwrap().lines().count()
        };
        let caught: Answered = bans.of(Some(client(1))).in_turn(LONG, |caught| {
            assert_eq!(written(), 0);
            caught();
            // Whoever ends the process now changes nothing.
            assert_eq!(written(), 1);
            cheats(caught)
        });
        assert!(caught.is_err());
        assert_eq!(written(), 1);
    }

    #[test]
    fn a_client_that_may_fail_again_begins_a_session_again() {
        let state = tempfile::tempdir().unwrap();
        let bans = bans(&state, 2);
        let [mut one, mut beside] = [1, 1].map(|number| bans.of(Some(client(number))));
        is_honest(&mut beside).unwrap();
        assert_eq!(convicted(one.in_turn(LONG, cheats)), None);
        assert_eq!(convicted(beside.in_turn(LONG, |_| unreachable!())), Some(Convicted::Elsewhere));
        assert_eq!(convicted(one.in_turn(LONG, |_| unreachable!())), Some(Convicted::Elsewhere));
        let mut later = bans.of(Some(client(1)));
        is_honest(&mut later).unwrap();
        assert_eq!(convicted(later.in_turn(LONG, cheats)), None);
        assert_eq!(convicted(later.in_turn(LONG, |_| unreachable!())), Some(banned(1, 2)));
    }

    #[test]
    fn clients_without_certificates_are_served_until_one_of_them_is_caught() {
        let state = tempfile::tempdir().unwrap();
        // However many times a client with a certificate may fail.
        let bans = bans(&state, 5);
        let [mut one, mut beside] = [(); 2].map(|()| bans.of(None));
        is_honest(&mut one).unwrap();
        is_honest(&mut beside).unwrap();
        let caught: Answered = one.in_turn(LONG, |caught| {
            caught();
            // Before the session ends.
            assert_eq!(convicted(beside.in_turn(LONG, |_| unreachable!())), Some(Convicted::Nobody));
            cheats(caught)
        });
        assert!(caught.is_err());
        assert_eq!(convicted(one.in_turn(LONG, |_| unreachable!())), Some(Convicted::Nobody));
        assert_eq!(convicted(bans.of(None).in_turn(LONG, |_| unreachable!())), Some(Convicted::Nobody));
        is_honest(&mut bans.of(Some(client(1)))).unwrap();
    }

    #[test]
    fn a_client_that_has_its_turn_elsewhere_hears_so_in_time() {
        let state = tempfile::tempdir().unwrap();
        let bans = bans(&state, 1);
        let held: Answered = bans.of(Some(client(1))).in_turn(LONG, |_| {
            let patience = Duration::from_millis(20);
            let waited: Answered = bans.of(Some(client(1))).in_turn(patience, |_| unreachable!());
            assert!(matches!(waited.unwrap_err().downcast_ref(), Some(StoreError::Taken { .. })));
            Ok(())
        });
        held.unwrap();
        is_honest(&mut bans.of(Some(client(1)))).unwrap();
    }

    #[test]
    fn other_errors_convict_nobody() {
        let state = tempfile::tempdir().unwrap();
        let bans = bans(&state, 1);
        for client in [Some(client(1)), None] {
            let mut one = bans.of(client);
            let gone = |_: &(dyn Fn() + Sync)| {
                Err(ExecutionError::Setup(ProtocolError::Channel(lanner_wire::ChannelError::Disconnected)))
            };
            assert!(one.in_turn::<Box<dyn Error + Send + Sync>>(LONG, gone).is_err());
            is_honest(&mut one).unwrap();
        }
    }
}
