//! Silent transfers that several threads make.

use crate::common::{correlated, rng, run};
use lanner_ot::silent::Parameters;
use lanner_ot::{
    CorrelatedReceiver, CorrelatedSender, CotReceiver, CotSender, SilentReceiver, SilentSender, random_delta,
};
use lanner_primitives::parallel;

#[test]
fn transfers_of_several_threads_are_correlated() {
    parallel::set_threads(3);
    let counts = [1, 200_000, Parameters::ALL[0].usable()];
    let ((delta, q), received) = run(
        |c| {
            let source = CotSender::setup(c, random_delta(&mut rng(1)), &mut rng(2)).unwrap();
            let mut sender = SilentSender::setup(c, source, Parameters::ALL[0], &mut rng(3)).unwrap();
            let mut q = Vec::new();
            for count in counts {
                sender.extend_random(c, count, &mut q).unwrap();
            }
            (sender.delta(), q)
        },
        |c| {
            let source = CotReceiver::setup(c, &mut rng(4)).unwrap();
            let mut receiver = SilentReceiver::setup(c, source, Parameters::ALL[0]).unwrap();
            counts.map(|count| {
                let mut t = Vec::new();
                (receiver.extend_random(c, count, &mut t).unwrap().0, t)
            })
        },
    );
    let mut q = q.as_slice();
    for (x, t) in &received {
        let (part, rest) = q.split_at(t.len());
        assert!(correlated(delta, part, x, t));
        q = rest;
    }
}
