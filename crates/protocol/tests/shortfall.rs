//! How far values are below the largest: each party of its own share.

use lanner_local::shortfall::{Bounded, Shortfall};
use lanner_primitives::{Ring, Share};
use lanner_step::{Client, Known, Samples, Server, Spec, Unprepared, ValueType};

use crate::common::{inputs, share};

/// A party's shares of what the step makes of its shares.
fn of<P>(spec: &Shortfall, own: &Share) -> Share
where
    P: lanner_step::PartyState,
    Shortfall: Unprepared<P>,
{
    share(Unprepared::<P>::ahead(spec, &inputs(&[own])).unwrap().unwrap())
}

/// Every sharing of every value from zero to the largest.
#[test]
fn only_the_largest_is_short_by_zero() {
    for (ring, largest) in [
        (Ring::Prime(61), 15),
        (Ring::Prime(61), 30),
        (Ring::Pow2(6), 15),
        (Ring::Pow2(6), 1),
        (Ring::Pow2(6), 21),
    ] {
        let all = (0..=largest).flat_map(|value| (0..=ring.largest()).map(move |server| (value, server)));
        let (secrets, server): (Vec<u64>, Vec<u64>) = all.unzip();
        let client = secrets.iter().zip(&server).map(|(value, server)| ring.sub(*value, *server)).collect();
        let values = secrets.len();
        let spec =
            Shortfall { parts: vec![Bounded { values, ring, largest }], values, samples: Samples::ONE };
        let [client, server] = [client, server].map(|own| Share::new(ring, own).unwrap());
        let [client, server] = [of::<Client>(&spec, &client), of::<Server>(&spec, &server)];
        for ((value, short), other) in secrets.iter().zip(client.values()).zip(server.values()) {
            assert_eq!(spec.to().add(*short, *other) == 0, *value == largest, "{value} in {ring:?}");
        }
    }
}

#[test]
fn places_that_no_value_has_are_short_by_one() {
    let ring = Ring::Prime(61);
    let spec = Shortfall {
        parts: vec![Bounded { values: 1, ring, largest: 7 }],
        values: 3,
        samples: Samples::try_from(2).unwrap(),
    };
    let [client, server] = [[60, 5], [8, 1]].map(|own| Share::new(ring, own.to_vec()).unwrap());
    let [client, server] = [of::<Client>(&spec, &client), of::<Server>(&spec, &server)];
    let short: Vec<u64> =
        client.values().iter().zip(server.values()).map(|(a, b)| spec.to().add(*a, *b)).collect();
    assert_eq!([short[0], short[3]].map(|short| short == 0), [true, false]);
    assert_eq!([short[1], short[2], short[4], short[5]], [1; 4]);
}

#[test]
fn a_largest_beyond_the_rings_integers_is_refused() {
    let of = |largest| Shortfall {
        parts: vec![Bounded { values: 3, ring: Ring::Prime(61), largest }],
        values: 4,
        samples: Samples::ONE,
    };
    let input = ValueType::shared(Ring::Prime(61), 3, Known::SERVER);
    assert_eq!(of(30).infer(&[input]).unwrap(), ValueType::shared(Ring::Pow2(6), 4, Known::SERVER));
    assert!(of(31).infer(&[input]).is_err() && of(30).infer(&[input, input]).is_err());
    assert!(Shortfall { values: 2, ..of(30) }.infer(&[input]).is_err());
}
