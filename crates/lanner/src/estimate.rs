//! What a prediction will take, for people and for `--json`.

use lanner_net::NetworkProfile;
use lanner_plan::{Cores, Estimate, Link, PhaseEstimate, StepEstimate};
use lanner_session::requests::Request;
use serde_json::{Value, json};

use crate::report::memory_of;
use crate::{Error, ErrorKind, Manifest, Result, kernel_times};

/// The seconds, bytes, rounds, memory and material of a session with one prediction, by phase and by step.
///
/// # Arguments
/// `kernels` is a table of what operations take on this machine, as JSON; where it is `None`, and for protocols that it lacks, the one that comes
/// with the build. `network` is what lies between the parties; `None` is nothing. `cores` are those of each party, where they are not those of
/// the table's machine.
///
/// # Errors
/// [`ErrorKind::Misuse`] if the table is damaged, or does not tell of what cores it is where some are given.
pub fn estimate(
    manifest: &Manifest,
    kernels: Option<&str>,
    network: Option<NetworkProfile>,
    cores: Cores,
) -> Result<Value> {
    let (kernels, used) = kernel_times::read(kernels)?;
    if cores != Cores::default() && kernels.cores.is_none() {
        let what = "the table of kernel times does not tell the cores of its machine";
        return Err(Error::new(ErrorKind::Misuse, what).fix("measure again with lanner doctor --calibrate"));
    }
    let table_cores = kernels.cores;
    let (kernels, link) = (kernels.on(cores), link(network));
    let built = manifest.plan.build()?;
    let mut estimate = built.estimate(&kernels, link)?;
    add_requests(&mut estimate, link);
    let layers: Vec<Value> = estimate.steps.iter().map(layer).collect();
    Ok(json!({
        "mode": manifest.mode,
        "model": manifest.name,
        "machine": kernels.machine,
        "kernel_times": used,
        "cores": {"client": cores.client.or(table_cores), "server": cores.server.or(table_cores)},
        "samples_per_request": manifest.plan.samples.count(),
        "phases": {"setup": estimate.setup, "offline": estimate.offline(), "online": estimate.online()},
        "memory": memory_of(&estimate.memory, 0),
        "material": {
            "client_bytes": estimate.memory.client_material, "server_bytes": estimate.memory.server_material,
        },
        "setup_operations": by_name(&estimate.setup_operations),
        "layers": layers,
    }))
}

/// The link over a network; over none where it is `None`.
pub(crate) fn link(network: Option<NetworkProfile>) -> Link {
    network.map_or(Link::LOOPBACK, |network| Link {
        seconds_per_byte: 8.0 / network.bandwidth_bits_per_second,
        round_trip_seconds: network.round_trip_seconds,
    })
}

/// The client asks for each phase that has messages, together with the first of them.
fn add_requests(estimate: &mut Estimate, link: Link) {
    let asked = Request::cost().client_bytes();
    let ask = |phase: &mut PhaseEstimate| {
        phase.bytes += asked;
        phase.seconds += asked as f64 * link.seconds_per_byte;
    };
    ask(&mut estimate.setup);
    let offline = estimate.steps.iter_mut().map(|step| &mut step.offline);
    offline.filter(|phase| phase.bytes > 0).take(1).for_each(ask);
    let online = estimate.steps.iter_mut().map(|step| &mut step.online);
    online.filter(|phase| phase.bytes > 0).take(1).for_each(ask);
}

fn layer(step: &StepEstimate) -> Value {
    let mut all: PhaseEstimate = step.offline;
    all += step.online;
    json!({
        "name": step.name,
        "protocol": step.protocol,
        "reason": step.reason,
        "timed": step.is_timed,
        "seconds": all.seconds,
        "bytes": all.bytes,
        "rounds": all.rounds,
        "phases": {"offline": step.offline, "online": step.online},
        "material": {
            "client_bytes": step.visits as u64 * step.memory.client_material,
            "server_bytes": step.visits as u64 * step.memory.server_material,
        },
        "model_bytes": step.memory.model,
        "visits": step.visits,
        "operations": by_name(&step.operations),
    })
}

fn by_name(operations: &[(&'static str, f64)]) -> Value {
    operations.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect()
}
