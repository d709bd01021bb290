//! What a server does with a session: it agrees on one of the models that it offers, and answers request after request, each within what the
//! session may hold of the memory that all sessions share.

mod reserved;
mod standing;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use lanner_net::Transport;
use lanner_primitives::Prg;
use lanner_store::{Stock, Uploads};
use lanner_wire::ChannelError;

use crate::executor::{ExecutionError, ServedModel};
use crate::handshake::{HandshakeError, Offer, answer};
use crate::requests::{Meeting, Request, Responder, Shelf};
use crate::server_loop::{Handler, SessionInfo};
use reserved::Reserved;
pub use standing::{Bans, Convicted};

/// How long a client may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// In the middle of a protocol.
    pub within: Duration,
    /// Before its next request: a person at a prompt may take longer than a peer in the middle of a protocol.
    pub between: Duration,
}

/// The models that a server serves: what it offers, what computes it, and what is kept on disk for clients.
pub struct Service {
    patience: Patience,
    offers: Vec<Offer>,
    models: Vec<Arc<ServedModel>>,
    stock: Arc<Stock>,
    uploads: Arc<Uploads>,
    bans: Option<Bans>,
}

impl Service {
    /// The service of models with what is offered of each.
    #[must_use]
    pub fn new(
        models: Vec<(Offer, ServedModel)>,
        patience: Patience,
        stock: impl Into<Arc<Stock>>,
        uploads: impl Into<Arc<Uploads>>,
    ) -> Self {
        let (offers, models) = models.into_iter().map(|(offer, model)| (offer, Arc::new(model))).unzip();
        Self { patience, offers, models, stock: stock.into(), uploads: uploads.into(), bans: None }
    }

    /// The same, where clients that fail a check of a model whose clients are checked are not served any more; of clients without certificates all are not. Without it they are, and
    /// all that a session has for a prediction that fails is gone.
    #[must_use]
    pub fn with_bans(mut self, bans: Bans) -> Self {
        self.bans = Some(bans);
        self
    }

    /// The least bytes that all sessions together must be allowed, so that one of them makes a prediction with keys that it uploads.
    #[must_use]
    pub fn least_material(&self) -> u64 {
        self.models.iter().map(|model| Reserved::least(model)).max().unwrap_or_default()
    }

    /// Pairings and material.
    #[must_use]
    pub fn stock(&self) -> &Stock {
        &self.stock
    }

    /// Keys that clients uploaded.
    #[must_use]
    pub fn uploads(&self) -> &Uploads {
        &self.uploads
    }
}

impl Handler for Arc<Service> {
    fn serve(
        &self,
        channel: &mut dyn Transport,
        session: &SessionInfo,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        // Nonces and names are seen by the client: no secret comes from what makes them.
        let mut public = Prg::from_entropy()?;
        let binding = channel.binding();
        let (index, agreement) = match answer(channel, binding, &self.offers, &mut public) {
            Err(HandshakeError::OnlyListed) => return Ok(()),
            answered => answered?,
        };
        session.is_about(&self.offers[index].model.name);
        let model = &self.models[index];
        // They outlive the material, however the session ends.
        let mut reserved = Reserved::new(session, model)?;
        // What was made without TLS is nobody's, and of no use under it.
        let certificate = match binding {
            Some(_) => channel.peer_certificate().map(|certificate| certificate.fingerprint.to_string()),
            None => Some("without TLS".to_owned()),
        };
        let bans = self.bans.as_ref().filter(|_| model.is_checked());
        let mut standing = bans.map(|bans| bans.of(session.certificate));
        let met = &self.offers[index].model;
        let meeting = Meeting::new(&agreement, met, session.peer.ip().to_string(), certificate);
        let shelf = Shelf::new(Arc::clone(&self.stock), meeting);
        let service = Responder::new(Arc::clone(model), Prg::from_entropy()?).with_shelf(shelf);
        let mut service = service.with_uploads(Arc::clone(&self.uploads));
        loop {
            channel.set_stall_limit(self.patience.between);
            let request = match session.while_idle(|| Responder::receive(channel)) {
                Err(ExecutionError::Channel(ChannelError::TimedOut)) => break,
                received => received.map_err(|error| service.explained(error))?,
            };
            channel.set_stall_limit(self.patience.within);
            let begun = session.elapsed();
            let room = reserved.room_for(request, service.prepared())?;
            match &mut standing {
                Some(standing) => {
                    let answer =
                        |caught: &(dyn Fn() + Sync)| service.answer_or_tell(channel, request, room, caught);
                    // A client that waits for its turn must not give up before it hears that it has none.
                    standing.in_turn::<Box<dyn Error + Send + Sync>>(self.patience.within / 2, answer)?;
                }
                None => service.answer_within(channel, request, room)?,
            }
            if request == Request::End {
                break;
            }
            let computed = service.computed();
            session.count_computation(begun, computed);
            let predicted = match request {
                Request::Predict | Request::PredictUnprepared => 1,
                Request::Together { predictions, .. } => predictions,
                Request::PredictKept(_) => u8::from(!computed.is_empty()),
                _ => 0,
            };
            reserved.after(request, service.prepared());
            session.count_predictions(predicted.into());
            // A set-up, and material, are for a prediction that is still to come.
            let is_complete = predicted > 0 || request == Request::Keep;
            if is_complete && session.is_stopping() {
                break;
            }
        }
        Ok(())
    }
}
