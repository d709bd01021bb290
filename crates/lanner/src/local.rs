//! Both parties in one process, over a channel in memory: for tests and notebooks.

use std::sync::Arc;

use lanner_net::memory;
use lanner_primitives::Prg;
use lanner_session::executor::{ClientPlan, ExecutionError, ServedModel};
use lanner_session::requests::{Request, Requester, Responder};

use lanner_wire::Channel;

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
    // The server's own error comes first: the client's is often only that the server is gone.
    served?;
    predicted
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
