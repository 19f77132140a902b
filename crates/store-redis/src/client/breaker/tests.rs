//! The rules of the breaker, one by one and under random loads.

use proptest::prelude::*;

use super::*;

const START: Time = Time::from_secs(1_800_000_000);

fn ms(millis: u64) -> Time {
    START.after(Span::from_millis(millis))
}

fn open() -> Breaker {
    let mut breaker = Breaker::new(START);
    assert!(breaker.trip(START, 7));
    breaker
}

/// Probes until it recovers; the moment at which it did.
fn recover(breaker: &mut Breaker) -> Time {
    loop {
        let at = breaker.probe_at().unwrap();
        if breaker.probed(at, true, 1_000_003) {
            return at;
        }
    }
}

#[test]
fn opens_after_five_failures_in_a_row_and_not_before() {
    let mut breaker = Breaker::new(START);
    for _ in 0..3 {
        for _ in 0..4 {
            assert!(!breaker.failed(ms(0), 0));
        }
        breaker.succeeded(ms(5_000));
    }
    let opened: Vec<bool> = (0..5).map(|at| breaker.failed(ms(10_000 + at), 0)).collect();
    assert_eq!(opened, [false, false, false, false, true]);
    assert_eq!(breaker.phase(), Phase::Open);
    assert!(!breaker.admits(ms(10_010), 0));
}

#[test]
fn a_check_ends_a_recovery_without_calls_and_never_one_that_fails() {
    let mut breaker = open();
    let since = recover(&mut breaker);
    breaker.settle(since.after(Span::from_nanos(RECOVERY.nanos() - 1)));
    assert_eq!(breaker.phase(), Phase::Recovering, "not before its time");
    let after = since.after(RECOVERY);
    let mut failing = breaker.clone();
    breaker.settle(after);
    assert_eq!(breaker.phase(), Phase::Closed);
    assert!(!failing.failed(after, 0));
    failing.settle(after);
    assert_eq!(failing.phase(), Phase::Recovering, "calls fail, whatever a check says");
    failing.succeeded(after);
    assert_eq!(failing.phase(), Phase::Closed);
    let mut still_open = open();
    still_open.settle(ms(60_000));
    assert_eq!(still_open.phase(), Phase::Open);
}

#[test]
fn opens_when_half_of_twenty_calls_in_a_second_fail() {
    let mut breaker = Breaker::new(START);
    for at in 0..9 {
        assert!(!breaker.failed(ms(at * 20), 0));
        breaker.succeeded(ms(at * 20));
    }
    assert!(!breaker.failed(ms(190), 0), "10 of 19 are more than half, of too few");
    breaker.succeeded(ms(191));
    breaker.succeeded(ms(192));
    breaker.succeeded(ms(193));
    assert!(!breaker.failed(ms(194), 0), "11 of 23 are less than half");
    assert!(breaker.failed(ms(195), 0), "12 of 24 are half, and enough");
}

#[test]
fn failures_of_earlier_seconds_do_not_count() {
    let mut breaker = Breaker::new(START);
    for second in 0..60 {
        for part in 0..8 {
            assert!(!breaker.failed(ms(second * 1100 + part), 0));
            breaker.succeeded(ms(second * 1100 + part));
        }
    }
    assert_eq!(breaker.phase(), Phase::Closed);
}

#[test]
fn probes_come_about_four_times_a_second() {
    let mut breaker = open();
    let mut last = START;
    for random in 0..1000 {
        let at = breaker.probe_at().unwrap();
        let pause = at.since(last);
        assert!(pause >= Span::from_millis(50) && pause <= Span::from_millis(450), "{pause}");
        assert!(!breaker.probed(at, false, random * 7_919_000_017));
        last = at;
    }
    let mean = last.since(START).nanos() / 1_000_000 / 1000;
    assert!((230..270).contains(&mean), "every {mean} ms");
}

#[test]
fn recovery_lets_a_growing_share_pass_and_then_everything() {
    let mut breaker = open();
    let since = recover(&mut breaker);
    assert_eq!(breaker.phase(), Phase::Recovering);
    let mut share = |millis: u64| {
        let now = since.after(Span::from_millis(millis));
        (0..64).filter(|random| breaker.admits(now, *random)).count()
    };
    assert_eq!([share(0), share(125), share(500), share(1000)], [4, 8, 32, 64]);
    breaker.succeeded(since.after(Span::from_millis(999)));
    assert_eq!(breaker.phase(), Phase::Recovering);
    breaker.succeeded(since.after(Span::from_millis(1000)));
    assert_eq!(breaker.phase(), Phase::Closed);
}

#[test]
fn failures_in_recovery_open_again_and_more_proof_is_needed() {
    let mut breaker = open();
    let mut needed = Vec::new();
    for _ in 0..6 {
        let mut probes = 1;
        while !breaker.probed(breaker.probe_at().unwrap(), true, 3) {
            probes += 1;
        }
        needed.push(probes);
        assert_eq!((0..5).map(|_| breaker.failed(ms(1), 0)).collect::<Vec<_>>(), [false, false, false, false, true]);
    }
    assert_eq!(needed, [1, 4, 16, 16, 16, 16]);
}

/// A server that recovered is used again soon, however often it failed before.
#[test]
fn a_server_that_is_well_again_is_not_starved() {
    let mut breaker = open();
    for _ in 0..5 {
        recover(&mut breaker);
        for _ in 0..5 {
            breaker.failed(ms(1), 0);
        }
    }
    let opened = breaker.probe_at().unwrap();
    let used = recover(&mut breaker);
    assert!(used.since(opened) < Span::from_millis(1_500), "{}", used.since(opened));
}

/// A few late replies among many do not open the breaker.
#[test]
fn a_few_failures_among_many_calls_do_not_open_it_again() {
    let mut breaker = open();
    let since = recover(&mut breaker);
    for call in 0..2_000 {
        let now = since.after(Span::from_millis(call));
        match call % 20 {
            0 => assert!(!breaker.failed(now, 0)),
            _ => breaker.succeeded(now),
        }
    }
    assert_eq!(breaker.phase(), Phase::Closed);
}

#[test]
fn a_bad_probe_starts_the_proof_anew() {
    let mut breaker = open();
    recover(&mut breaker);
    assert!(breaker.trip(ms(400), 0));
    for good in [true, true, true, false, true, true, true] {
        assert!(!breaker.probed(breaker.probe_at().unwrap(), good, 0));
    }
    assert!(breaker.probed(breaker.probe_at().unwrap(), true, 0));
}

#[test]
fn calm_makes_it_forget() {
    let mut breaker = open();
    let since = recover(&mut breaker);
    breaker.trip(since, 0);
    let closed = recover(&mut breaker).after(Span::from_secs(1));
    breaker.succeeded(closed);
    assert!(breaker.trip(closed.after(Span::from_secs(30)), 0));
    assert_eq!(breaker.factor(), 1);
}

/// Fault F5: replies take 0 to 200 ms, those above 25 ms are failures; one caller sends as fast as the breaker allows.
fn openings_in_a_minute(late_in_thousand: u64, seed: u64) -> u32 {
    let mut state = seed;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 20
    };
    let (mut breaker, mut now, mut openings) = (Breaker::new(START), START, 0);
    while now.since(START) < Span::from_secs(60) {
        let late = random() % 1000 < late_in_thousand;
        let took = Span::from_millis(if late { 25 } else { 1 + random() % 24 });
        if let Some(at) = breaker.probe_at() {
            now = now.max(at).after(took);
            breaker.probed(now, !late, random());
            continue;
        }
        now = now.after(took);
        if !breaker.admits(now, random()) {
            continue;
        }
        if !late {
            breaker.succeeded(now);
        } else if breaker.failed(now, random()) {
            openings += 1;
        }
    }
    openings
}

proptest! {
    #[test]
    fn it_does_not_flap(late_in_thousand in 0u64..=1000, seed in any::<u64>()) {
        // The first opening does not count: flapping is opening again.
        prop_assert!(openings_in_a_minute(late_in_thousand, seed) <= 1 + 4);
    }

    #[test]
    fn nothing_passes_while_open_and_time_moves_as_it_likes(
        events in prop::collection::vec((0u8..5, 0u64..5_000, any::<u64>()), 1..400)
    ) {
        let mut breaker = Breaker::new(START);
        for (event, at, random) in events {
            let (now, before) = (ms(at), breaker.phase());
            match event {
                0 => breaker.succeeded(now),
                1 => { breaker.failed(now, random); }
                2 => { breaker.trip(now, random); }
                3 => { breaker.probed(now, random % 2 == 0, random); }
                _ => {
                    let passes = breaker.admits(now, random);
                    prop_assert_eq!(breaker.phase(), before);
                    match before {
                        Phase::Open => prop_assert!(!passes),
                        Phase::Closed => prop_assert!(passes),
                        Phase::Recovering => {}
                    }
                }
            }
            prop_assert_eq!(breaker.probe_at().is_some(), breaker.phase() == Phase::Open);
            // Only a probe leads out of the open phase, and only a success to the closed one.
            let after = breaker.phase();
            prop_assert!(before != Phase::Open || after == Phase::Open || event == 3);
            prop_assert!(after != Phase::Closed || before == Phase::Closed || event == 0);
        }
    }
}
