//! Both parties in one process, over a channel in memory: for tests and notebooks.

use std::sync::Arc;

use lanner_net::memory;
use lanner_primitives::Prg;
use lanner_session::executor::{ClientPlan, ExecutionError, ServedModel};
use lanner_session::requests::{Request, Requester, Responder};

use lanner_wire::{Channel, ChannelError};

use crate::{Error, ErrorKind, Model, Prediction, Result};

/// Predicts samples by one request, with both parties in this process.
///
/// # Errors
/// [`ErrorKind::Input`] if a sample does not fit the model; [`ErrorKind::Misuse`] if there are none, or more than a request holds.
pub fn run(model: &Model, samples: &[&[f32]]) -> Result<Vec<Prediction>> {
    lanner_session::use_all_cores();
    let manifest = model.manifest();
    let input = manifest.request(samples)?;
    let served = Arc::new(ServedModel::new(model.network(), &manifest.plan)?);
    let plan = Arc::new(ClientPlan::new(&manifest.network, &manifest.plan)?);
    let (mut client, mut server) = memory::pair();
    let serving = std::thread::spawn(move || serve(&mut server, served));
    let predicted = (|| {
        let rng = Prg::from_entropy().map_err(ExecutionError::from)?;
        let mut requester = Requester::new(plan, rng);
        let (outcome, costs) = requester.predict(&mut client, &input)?;
        let predictions = Prediction::of_request(manifest, outcome, samples.len(), requester.setup(), &costs);
        requester.end(&mut client)?;
        Ok::<_, Error>(predictions)
    })();
    drop(client);
    let served =
        serving.join().map_err(|_| Error::new(ErrorKind::Misuse, "the serving thread ended early"))?;
    first_error(served, predicted)
}

/// What was predicted, or the error that was first: that of a party is often only that the other is gone.
fn first_error<T>(served: std::result::Result<(), ExecutionError>, predicted: Result<T>) -> Result<T> {
    match served {
        Err(error) if !matches!(error.channel(), Some(ChannelError::Disconnected)) || predicted.is_ok() => {
            Err(error.into())
        }
        _ => predicted,
    }
}

fn serve(channel: &mut dyn Channel, model: Arc<ServedModel>) -> std::result::Result<(), ExecutionError> {
    let mut service = Responder::new(model, Prg::from_entropy()?);
    loop {
        match Responder::receive(channel)? {
            Request::End => return Ok(()),
            request => service.answer(channel, request)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_party_that_is_gone_hides_no_error_of_its_own() {
        let gone = || ExecutionError::Channel(ChannelError::Disconnected);
        let own = || ExecutionError::NoKeys;
        let told =
            |served, predicted| first_error::<()>(served, predicted).map_err(|error| error.to_string());
        let text = |error: ExecutionError| Err(Error::from(error).to_string());
        assert_eq!(told(Err(gone()), Err(own().into())), text(own()));
        assert_eq!(told(Err(own()), Err(gone().into())), text(own()));
        assert_eq!(told(Ok(()), Err(own().into())), text(own()));
        assert_eq!(told(Err(gone()), Ok(())), text(gone()));
        assert_eq!(told(Ok(()), Ok(())), Ok(()));
    }
}
