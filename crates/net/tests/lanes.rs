//! Several exchanges over one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{PING, PONG, plaintext_pair, short_limits, tls_pair};
use lanner_net::{Limits, MOST_KEPT, MOST_LANES, TcpChannel, Transport, abreast};
use lanner_wire::{Channel, ChannelError, Kind, Refusal};

/// More than either party of an exchange here sends.
const AHEAD: usize = 256 << 20;

/// Messages of every size up to some chunks, each way in turn or many at once, told apart by their content.
fn talk(
    channel: &mut dyn Channel,
    seed: u64,
    speaks_first: bool,
    messages: usize,
) -> Result<u64, ChannelError> {
    let mut sum = 0;
    let mut state = seed;
    for number in 0..messages {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = (state >> 33) as usize % [7, 900, 70_000, 700_000][number % 4];
        let content: Vec<u8> = (0..length).map(|i| (i as u64 * 31 + state) as u8).collect();
        if speaks_first == (state >> 20).is_multiple_of(2) {
            channel.send(PING, &content)?;
        } else {
            assert_eq!(channel.receive(PING, length)?, content);
        }
        sum += length as u64;
    }
    channel.flush()?;
    Ok(sum)
}

type Both = Result<(u64, Result<u64, ChannelError>), ChannelError>;

fn both(
    mut channel: TcpChannel,
    first: impl FnOnce(&mut dyn Channel) -> Result<u64, ChannelError> + Send,
    second: impl FnOnce(&mut dyn Channel) -> Result<u64, ChannelError>,
) -> (TcpChannel, Both) {
    channel.allow_ahead(AHEAD);
    let made = abreast(channel.divisible().unwrap(), MOST_KEPT, vec![first], second);
    (channel, made.map(|(firsts, second)| (firsts[0], second)))
}

/// Two parties that talk on both lanes, and then go on without them.
fn talk_abreast((client, server): (TcpChannel, TcpChannel), messages: usize) {
    let served = thread::spawn(move || {
        let (mut server, made) =
            both(server, |one| talk(one, 1, false, messages), |two| talk(two, 2, true, messages));
        let (first, second) = made.unwrap();
        assert_eq!(server.receive(PONG, 3).unwrap(), [1, 2, 3]);
        (first, second.unwrap())
    });
    let (mut client, made) =
        both(client, |one| talk(one, 1, true, messages), |two| talk(two, 2, false, messages));
    let (first, second) = made.unwrap();
    // The peer may still be at work on its lanes: this waits behind them.
    client.send(PONG, &[1, 2, 3]).unwrap();
    client.flush().unwrap();
    assert_eq!(served.join().unwrap(), (first, second.unwrap()));
}

#[test]
fn both_lanes_have_their_own_messages_in_order() {
    for messages in [1, 2, 3, 200] {
        talk_abreast(plaintext_pair(Limits::default()), messages);
        talk_abreast(tls_pair(Limits::default()), messages);
    }
}

#[test]
fn a_lane_that_nobody_reads_holds_up_nobody_until_it_has_much() {
    let (client, server) = plaintext_pair(Limits::default());
    // More than is kept of a lane: the rest waits in the connection until the lane is read.
    let lot = vec![5; 100 << 20];
    let length = lot.len();
    let served = thread::spawn(move || {
        both(
            server,
            |one| one.receive(PING, 1).map(|_| 1),
            |two| {
                thread::sleep(Duration::from_millis(300));
                Ok(two.receive(PING, length)?.len() as u64)
            },
        )
    });
    let sends = |two: &mut dyn Channel| two.send(PING, &lot).and_then(|()| two.flush()).map(|()| 0);
    let (_, made) = both(client, |one| one.send(PING, &[1]).map(|()| 0), sends);
    made.unwrap().1.unwrap();
    let (_, served) = served.join().unwrap();
    assert_eq!(served.map(|(one, two)| (one, two.unwrap())).unwrap(), (1, length as u64));
}

#[test]
fn traffic_is_that_of_the_lane() {
    let (client, server) = plaintext_pair(Limits::default());
    let traffic = |one: &mut dyn Channel| {
        one.send(PING, &[0; 1000])?;
        one.receive(PONG, 10)?;
        Ok((one.traffic().sent << 32) + (one.traffic().received << 8) + one.traffic().rounds)
    };
    let echo = |one: &mut dyn Channel| {
        one.receive(PING, 1000)?;
        one.send(PONG, &[0; 10]).map(|()| 0)
    };
    let served = thread::spawn(move || both(server, echo, |_| Ok(0)).1.unwrap());
    let (_, made) = both(client, traffic, |_| Ok(0));
    assert_eq!(made.unwrap().0, (1006 << 32) + (16 << 8) + 1);
    served.join().unwrap().1.unwrap();
}

#[test]
fn the_error_that_came_first_is_told_and_ends_the_other_lane() {
    let wrong = || ChannelError::Malformed { what: "wrong" };
    for second_fails in [false, true] {
        let (client, _server) = plaintext_pair(Limits::default());
        let fails = |_: &mut dyn Channel| Err(wrong());
        let waits = |lane: &mut dyn Channel| lane.receive(PING, 5).map(|_| 0);
        let started = Instant::now();
        let (_, made) = if second_fails { both(client, waits, fails) } else { both(client, fails, waits) };
        assert!(matches!(made, Err(ChannelError::Malformed { what: "wrong" })), "{made:?}");
        assert!(started.elapsed() < Duration::from_secs(20), "the other lane waited for a peer");
    }
}

#[test]
fn what_the_first_lane_made_is_kept_when_the_second_fails() {
    let (client, server) = plaintext_pair(Limits::default());
    let served = thread::spawn(move || {
        both(server, |one| one.receive(PING, 1).map(|_| 0), |_| Err(ChannelError::TimedOut)).1
    });
    let (_, made) = both(
        client,
        |one| one.send(PING, &[1]).map(|()| 7),
        |two| {
            thread::sleep(Duration::from_millis(100));
            two.receive(PING, 1).map(|_| 0)
        },
    );
    drop(served.join().unwrap());
    let (seven, second) = made.unwrap();
    assert_eq!(seven, 7);
    second.unwrap_err();
}

#[test]
fn a_panic_ends_the_other_lane_too() {
    let (client, _server) = plaintext_pair(Limits::default());
    let panicked = thread::spawn(move || {
        both(client, |one| one.receive(PING, 5).map(|_| 0), |_| panic!("on the second lane")).1
    });
    panicked.join().unwrap_err();
}

#[test]
fn a_refusal_a_silent_peer_and_one_that_leaves_are_told() {
    let waits = |lane: &mut dyn Channel| lane.receive(PING, 5).map(|_| 0);
    let (client, mut server) = plaintext_pair(short_limits());
    server.send(Kind::REFUSED, &[Refusal::Busy.code()]).unwrap();
    server.flush().unwrap();
    assert!(matches!(both(client, waits, waits).1, Err(ChannelError::Refused(Refusal::Busy))));

    let (client, _server) = plaintext_pair(short_limits());
    assert!(matches!(both(client, waits, waits).1, Err(ChannelError::TimedOut)));

    let (client, server) = tls_pair(short_limits());
    drop(server);
    assert!(matches!(both(client, waits, waits).1, Err(ChannelError::Disconnected)));
}

/// A peer that speaks on the connection itself.
fn hears(kind: Kind, payload: &[u8]) -> ChannelError {
    let (client, mut server) = plaintext_pair(short_limits());
    server.send(kind, payload).unwrap();
    server.flush().unwrap();
    let waits = |lane: &mut dyn Channel| lane.receive(PING, 5).map(|_| 0);
    both(client, waits, waits).1.unwrap_err()
}

#[test]
fn what_is_no_chunk_is_refused() {
    for lane in [Kind(0x100), Kind(0x101)] {
        assert!(matches!(hears(lane, &[]), ChannelError::Malformed { .. }));
        assert!(matches!(hears(lane, &vec![0; (1 << 18) + 1]), ChannelError::Malformed { .. }));
        // A chunk whose bytes are another message than the one due.
        assert!(matches!(hears(lane, &[5, 0, 0, 0, 9, 0, 1, 2, 3, 4, 5]), ChannelError::Unexpected { .. }));
    }
    // The peer goes on without the lanes, whose messages are then missing.
    assert!(matches!(hears(PONG, &[1, 2, 3]), ChannelError::Malformed { .. }));
}

#[test]
fn what_is_left_on_a_lane_is_refused() {
    let (client, mut server) = plaintext_pair(short_limits());
    server.send(Kind(0x100), &[0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 7, 0]).unwrap();
    server.flush().unwrap();
    let (_, made) = both(client, |one| one.receive(PING, 0).map(|_| 0), |_| Ok(0));
    assert!(matches!(made, Err(ChannelError::Malformed { .. })), "{made:?}");
}

#[test]
fn as_many_lanes_as_there_may_be() {
    let (client, server) = tls_pair(Limits::default());
    let run = |mut channel: TcpChannel, first_speaks: bool, lanes: usize| {
        let one = |seed: u64| move |lane: &mut dyn Channel| talk(lane, seed, first_speaks, 40);
        let firsts = (1..lanes as u64).map(one).collect();
        channel.allow_ahead(AHEAD);
        abreast(channel.divisible().unwrap(), MOST_KEPT, firsts, one(0))
            .map(|(firsts, last)| (firsts, last.unwrap(), channel))
    };
    let served = thread::spawn(move || run(server, false, MOST_LANES).unwrap());
    let (firsts, last, client) = run(client, true, MOST_LANES).unwrap();
    let served = served.join().unwrap();
    assert_eq!((firsts.len(), &firsts, last), (MOST_LANES - 1, &served.0, served.1));
    assert!(matches!(run(client, true, MOST_LANES + 1), Err(ChannelError::Malformed { .. })));
}

#[test]
fn of_many_lanes_the_one_that_failed_first_is_told() {
    let (mut client, _server) = plaintext_pair(Limits::default());
    let exchange = |number: usize| {
        move |lane: &mut dyn Channel| match number {
            3 => Err(ChannelError::Malformed { what: "third" }),
            _ => lane.receive(PING, 5).map(|_| ()),
        }
    };
    let made = abreast(client.divisible().unwrap(), MOST_KEPT, (0..6).map(exchange).collect(), exchange(6));
    assert!(matches!(made, Err(ChannelError::Malformed { what: "third" })), "{made:?}");
}

#[test]
fn what_comes_for_a_lane_that_is_over_is_refused_at_once() {
    let (client, mut server) = plaintext_pair(short_limits());
    server.send(Kind(0x100), &[0, 0, 0, 0, 7, 0]).unwrap();
    server.flush().unwrap();
    let served = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        server.send(Kind(0x100), &[0; 6]).unwrap();
        server.flush().unwrap();
        server
    });
    let waits = |lane: &mut dyn Channel| lane.receive(PONG, 5).map(|_| 0);
    let (_, made) = both(client, |one| one.receive(PING, 0).map(|_| 0), waits);
    let beside = made.unwrap().1.unwrap_err();
    assert!(matches!(beside, ChannelError::Malformed { .. }), "{beside:?}");
    drop(served.join().unwrap());
}

/// A peer that refuses while this party sends: the refusal is told, whichever lane meets it and however its end is noticed.
#[test]
fn a_refusal_is_told_to_parties_that_send() {
    let lot = vec![3; 8 << 20];
    for lanes in [1, 2, 5] {
        let (mut client, mut server) = plaintext_pair(Limits::default());
        let served = thread::spawn(move || {
            server.send(Kind::REFUSED, &[Refusal::Busy.code()]).unwrap();
            server.close(Duration::from_secs(5)).unwrap();
        });
        let sends = |lane: &mut dyn Channel| {
            lane.send(PING, &lot)?;
            lane.receive(PONG, 5).map(|_| ())
        };
        let made = abreast(client.divisible().unwrap(), MOST_KEPT, vec![sends; lanes], sends);
        assert!(matches!(made, Err(ChannelError::Refused(Refusal::Busy))), "{lanes}: {made:?}");
        drop(client);
        served.join().unwrap();
    }
}

/// What was queued before the lanes goes first, even where this party then only listens.
#[test]
fn what_was_queued_before_is_sent() {
    let (mut client, mut server) = plaintext_pair(short_limits());
    let served = thread::spawn(move || {
        server.receive(PONG, 1).unwrap();
        both(server, |one| one.send(PING, &[1]).map(|()| 0), |_| Ok(0)).1.unwrap()
    });
    client.send(PONG, &[1]).unwrap();
    let (_, made) = both(client, |one| one.receive(PING, 1).map(|_| 0), |_| Ok(0));
    made.unwrap().1.unwrap();
    served.join().unwrap().1.unwrap();
}

/// A peer that fills lanes nobody reads is stopped by what all of them may keep together.
#[test]
fn all_lanes_together_keep_a_bounded_number_of_bytes() {
    const LANES: u16 = 8;
    let (mut client, mut server) = plaintext_pair(Limits::default());
    let stop = Arc::new(AtomicBool::new(false));
    let sent = Arc::new(AtomicUsize::new(0));
    let flooding = thread::spawn({
        let (stop, sent) = (Arc::clone(&stop), Arc::clone(&sent));
        move || {
            let chunk = vec![0; 1 << 18];
            for lane in (0..LANES).cycle() {
                if server.send(Kind(0x100 + lane), &chunk).and_then(|()| server.flush()).is_err() {
                    return;
                }
                sent.fetch_add(chunk.len(), Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    });
    let sleeps = |_: &mut dyn Channel| {
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        Err::<(), _>(ChannelError::TimedOut)
    };
    let waits = |lane: &mut dyn Channel| {
        // Its own lane is not among those that are filled.
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(2) {
            lane.send(PING, &[0; 100])?;
            lane.flush()?;
            thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
        Ok(())
    };
    let made = abreast(client.divisible().unwrap(), MOST_KEPT, vec![sleeps; usize::from(LANES)], waits);
    assert!(made.is_err());
    let kept = sent.load(Ordering::Relaxed);
    // What the sockets hold comes on top.
    assert!((60 << 20..100 << 20).contains(&kept), "{kept}");
    drop(client);
    flooding.join().unwrap();
}

/// A lane that reads what came before the other one's refusal, and needs no more, has its result.
#[test]
fn what_has_come_is_read_though_another_lane_failed() {
    let (client, mut server) = plaintext_pair(short_limits());
    server.send(Kind(0x100), &[0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 7, 0]).unwrap();
    server.send(Kind::REFUSED, &[Refusal::Busy.code()]).unwrap();
    server.flush().unwrap();
    let read = Arc::new(AtomicUsize::new(0));
    let reads = |lane: &mut dyn Channel| {
        for _ in 0..2 {
            lane.receive(PING, 0)?;
            read.fetch_add(1, Ordering::Relaxed);
            // Meanwhile the other one fails.
            thread::sleep(Duration::from_millis(300));
        }
        Ok(0)
    };
    let (_, made) = both(client, reads, |lane| lane.receive(PONG, 5).map(|_| 0));
    assert_eq!(read.load(Ordering::Relaxed), 2);
    // Of the lane that is over, the result is there; the refusal is the other's.
    let refused = made.unwrap().1.unwrap_err();
    assert!(matches!(refused, ChannelError::Refused(Refusal::Busy)), "{refused:?}");
}

/// Behind all that was due, where no lane waits any more, a refusal is told in the place of the last lane's result.
#[test]
fn a_refusal_behind_the_last_chunk_is_told() {
    let (client, mut server) = plaintext_pair(short_limits());
    for lane in [0x100, 0x101] {
        server.send(Kind(lane), &[0, 0, 0, 0, 7, 0]).unwrap();
    }
    server.send(Kind::REFUSED, &[Refusal::Busy.code()]).unwrap();
    server.flush().unwrap();
    thread::sleep(Duration::from_millis(100));
    let (_, made) =
        both(client, |one| one.receive(PING, 0).map(|_| 42), |two| two.receive(PING, 0).map(|_| 0));
    let (result, beside) = made.unwrap();
    assert_eq!(result, 42);
    assert!(matches!(beside, Err(ChannelError::Refused(Refusal::Busy))), "{beside:?}");
}

/// A peer that refuses behind a chunk, and resets the connection while this party still writes.
#[test]
fn a_refusal_behind_a_chunk_is_told_to_who_sends() {
    let lot = vec![3; 64 << 20];
    let (mut client, mut server) = plaintext_pair(Limits::default());
    let served = thread::spawn(move || {
        // The client's write waits for room by now.
        thread::sleep(Duration::from_millis(500));
        server.send(Kind(0x101), &[0; 8]).unwrap();
        server.send(Kind::REFUSED, &[Refusal::Busy.code()]).unwrap();
        server.flush().unwrap();
    });
    let sends = |lane: &mut dyn Channel| {
        lane.send(PING, &lot)?;
        lane.receive(PONG, 5).map(|_| ())
    };
    let waits = |lane: &mut dyn Channel| {
        thread::sleep(Duration::from_secs(2));
        lane.receive(PONG, 500).map(|_| ())
    };
    let made = abreast(client.divisible().unwrap(), MOST_KEPT, vec![sends], waits);
    assert!(matches!(made, Err(ChannelError::Refused(Refusal::Busy))), "{made:?}");
    served.join().unwrap();
}

/// What a lane waits for lies behind more than is kept for another one, which computes for longer than a peer may be silent.
#[test]
fn a_party_that_is_at_work_does_not_take_the_peer_for_silent() {
    let mut limits = short_limits();
    limits.stall = Duration::from_secs(1);
    let (client, mut server) = plaintext_pair(limits);
    let length = 80 << 20;
    let served = thread::spawn(move || {
        let header = [&(length as u32).to_le_bytes()[..], &7_u16.to_le_bytes()].concat();
        let all = [header, vec![0; length]].concat();
        for chunk in all.chunks(1 << 18) {
            server.send(Kind(0x100), chunk).unwrap();
        }
        server.send(Kind(0x101), &[0, 0, 0, 0, 7, 0]).unwrap();
        server.flush().unwrap();
        server
    });
    let computes = |lane: &mut dyn Channel| {
        thread::sleep(Duration::from_millis(2500));
        lane.receive(PING, length).map(|_| 1)
    };
    let (_, made) = both(client, computes, |lane| lane.receive(PING, 0).map(|_| 0));
    made.unwrap().1.unwrap();
    drop(served.join().unwrap());
}

/// Whole chunks for one lane prolong the wait of another by what they may take, and no more.
#[test]
fn a_peer_that_drips_is_timed_out() {
    let (client, mut server) = plaintext_pair(short_limits());
    let started = Instant::now();
    let dripping = thread::spawn(move || {
        while server.send(Kind(0x100), &vec![0; 1 << 18]).and_then(|()| server.flush()).is_ok() {
            thread::sleep(Duration::from_secs(6));
        }
    });
    let computes = |lane: &mut dyn Channel| lane.receive(PING, 16 << 20).map(|_| 0);
    let waits = |lane: &mut dyn Channel| lane.receive(PING, 5).map(|_| 0);
    let (channel, made) = both(client, computes, waits);
    assert!(made.is_err());
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    drop(channel);
    dripping.join().unwrap();
}
