//! Known defects of scripts of this kind (RELIABILITY section 0), each by its number.

use tollgate_core::{Ask, Charge, Digest, Gcra, Limit, Outcome, Receipt, SlotId, Span, Time, Wait};
use tollgate_resp::RespValue;
use tollgate_store_redis::script::{Batch, BatchReply, ReturnReply, Returns, Script, ScriptAnswer, ScriptCall};

use crate::rig::{NEVER, Rig, batch, command, every_kind, key, numbers, parts, with_numbers};

const MINUTE: Span = Span::from_secs(60);

fn outcomes(reply: &BatchReply) -> Vec<Outcome> {
    let BatchReply::Answers { answers, disagreed: 0, .. } = reply else { panic!("{reply:?}") };
    let [ScriptAnswer::Taken { outcomes, .. }] = answers.as_slice() else { panic!("{answers:?}") };
    outcomes.to_vec()
}

fn receipt(charge: &Charge, outcome: &Outcome, number: u64) -> Receipt {
    Receipt { number: Some(number), ..Receipt::of(charge, outcome) }
}

fn give_back(rig: &mut Rig, deadline: Time, receipts: Vec<Receipt>) -> ReturnReply {
    let returns = Returns::new(deadline, receipts);
    let mut out = Vec::new();
    returns.encode(ScriptCall::Text, &mut out);
    let reply = rig.send(&out);
    returns.decode(&reply).unwrap_or_else(|bad| panic!("{bad}: {reply:?}"))
}

/// A write and its expiry are atomic, or the expiry cannot fail: whatever the spans, no key stays for ever, and none
/// longer than until it equals an unused one.
#[test]
fn e4_no_key_is_without_an_expiry_and_none_lives_longer_than_its_state() {
    let mut rig = Rig::start();
    for window in [Span::from_nanos(3), Span::from_nanos(1_500_000), MINUTE, Span::from_nanos(1 << 61)] {
        for charge in every_kind(window) {
            let charge = Charge { bucket: Digest([charge.bucket.0[0], window.nanos()]), ..charge };
            let told = outcomes(&rig.take(NEVER, &[charge]).expect("an answer"));
            let left = rig.integer(&["PTTL", &key(&charge)]);
            // A window resets when it ends, a counter one window later; slots round up to a microsecond.
            // The server counts from the millisecond that has begun.
            let most = told[0].reset_after.plus(Span::from_nanos(1_000)).millis_ceil() as i64 + 2;
            let gone = left == -2 && window < MINUTE;
            assert!(gone || (0..=most).contains(&left), "{charge:?}: {left} ms of {most}");
            if window >= MINUTE {
                assert!(left + 5_000 > most, "{charge:?}: {left} ms of {most}: forgotten early");
            }
        }
    }
    for key in rig.keys() {
        assert!(rig.integer(&["PTTL", &key]) != -1, "{key} stays for ever");
    }
}

/// After releases, refunds and refusals too.
#[test]
fn e4_what_is_given_back_keeps_its_expiry_and_so_do_marks_of_spent_receipts() {
    let mut rig = Rig::start();
    for charge in every_kind(MINUTE) {
        let ask = |n| match charge.ask {
            Ask::Hold(_) => Ask::Hold(SlotId(u128::from(n))),
            _ => Ask::Consume(n),
        };
        let first = outcomes(&rig.take(NEVER, &[charge]).expect("an answer"));
        rig.take(NEVER, &[Charge { ask: ask(2), ..charge }]).expect("an answer");
        rig.take(NEVER, &[Charge { ask: ask(9), ..charge }]).expect("an answer");
        give_back(&mut rig, NEVER, vec![receipt(&charge, &first[0], 5), receipt(&charge, &first[0], 5)]);
        let most = 2 * MINUTE.millis_ceil() as i64 + 2;
        assert!((1..=most).contains(&rig.integer(&["PTTL", &key(&charge)])), "{charge:?}");
    }
    let keys = rig.keys();
    assert!(keys.iter().any(|key| key.contains('!')), "{keys:?}");
    for key in keys {
        let left = rig.integer(&["PTTL", &key]);
        assert!((1..=2 * MINUTE.millis_ceil() as i64 + 2).contains(&left), "{key}: {left} ms");
    }
}

/// Zero windows are no limits, and a script that is given one all the same refuses it before it writes.
#[test]
fn e5_a_window_of_nothing_is_refused() {
    let mut rig = Rig::start();
    for charge in every_kind(MINUTE).iter().skip(2) {
        let command = command(&batch(NEVER, &[*charge]));
        let mut zero = numbers(&command);
        // A period of nothing ends before it starts.
        let window = if let Limit::Quota(_) = charge.limit { 24..33 } else { 15..24 };
        zero[window].fill(0);
        assert_refused(&mut rig, &with_numbers(&command, &zero), b"ARGS");
    }
}

#[track_caller]
fn assert_refused(rig: &mut Rig, command: &[u8], word: &[u8]) {
    let before = rig.size();
    let reply = rig.send(command);
    let told = reply.array().and_then(|reply| reply.get(2)).and_then(RespValue::text);
    assert_eq!(told, Some(word), "{reply:?}");
    assert_eq!(rig.size(), before, "nothing is written");
}

/// Numbers are unsigned integers by their form: there is no way to write one that is not. What is too short, too long or
/// out of range is refused before the first write; so is text.
#[test]
fn e6_arguments_that_are_no_numbers_are_refused_before_anything_is_written() {
    let mut rig = Rig::start();
    let mut commands: Vec<Vec<u8>> =
        every_kind(MINUTE).iter().map(|charge| command(&batch(NEVER, &[*charge]))).collect();
    commands.push(command(&batch(NEVER, &every_kind(MINUTE))));
    let receipts = every_kind(MINUTE).map(|charge| Receipt {
        bucket: charge.bucket,
        limit: charge.limit,
        owner: charge.owner,
        identity: 0,
        units: 1,
        stamp: NEVER,
        slot: Some(SlotId(1)),
        number: Some(1),
    });
    for receipt in receipts {
        let mut back = Vec::new();
        Returns::new(NEVER, vec![receipt]).encode(ScriptCall::Text, &mut back);
        commands.push(back);
    }
    for command in &commands {
        let good = numbers(command);
        for cut in (0..good.len()).filter(|cut| *cut != 9) {
            assert_refused(&mut rig, &with_numbers(command, &good[..cut]), b"ARGS");
        }
        for text in ["", "nan", "inf", "1e3", "-5", "0x10", "18446744073709551616"] {
            assert_refused(&mut rig, &with_numbers(command, text.as_bytes()), b"ARGS");
        }
        let longer = [good.as_slice(), b"x"].concat();
        assert_refused(&mut rig, &with_numbers(command, &longer), b"ARGS");
    }
    assert_eq!(rig.size(), 0);
}

/// A key number, a kind or a part of a second that cannot be.
#[test]
fn e6_numbers_out_of_range_are_refused() {
    let mut rig = Rig::start();
    for charge in every_kind(MINUTE) {
        let command = command(&batch(NEVER, &[charge]));
        let good = numbers(&command);
        // deadline 9, opens 2, kind 1, flags 1, key 2, then seconds 5 and nanoseconds 4
        for (place, bytes) in [(11, &[9_u8][..]), (13, &[0, 0]), (13, &[2, 0]), (20, &[0xff; 4])] {
            let mut bad = good.clone();
            bad[place..place + bytes.len()].copy_from_slice(bytes);
            assert_refused(&mut rig, &with_numbers(&command, &bad), b"ARGS");
        }
    }
}

/// Every nanosecond of an arrival time is kept, as an integer that people can read and that takes Redis no allocation.
#[test]
fn e7_a_nanosecond_is_a_nanosecond() {
    let mut rig = Rig::start();
    let limit = Limit::Gcra(Gcra::new(1, Span::from_nanos(1), 1_000_000).expect("a valid limit"));
    let charge = Charge::new(Digest([1, 1]), limit, 1);
    let mut now = Time::from_nanos(1_794_724_490_674_765_771);
    for step in 1..=5 {
        outcomes(&rig.take_at(now, &[charge]));
        assert_eq!(rig.text(&["GET", &key(&charge)]), (now.nanos() + step).to_string());
        assert_eq!(rig.text(&["OBJECT", "ENCODING", &key(&charge)]), "int");
        if step == 5 {
            now = now.after(Span::from_nanos(1));
        }
    }
}

/// The reply holds the exact time and the exact state.
#[test]
fn e8_the_time_comes_back_whole() {
    let mut rig = Rig::start();
    let now = Time::from_nanos(1_794_724_490_999_999_999);
    for charge in every_kind(MINUTE) {
        let reply = rig.take_at(now, &[charge]);
        assert!(matches!(reply, BatchReply::Answers { now: told, .. } if told == now), "{reply:?}");
    }
}

#[test]
fn e9_the_clock_is_read_once_and_the_first_line_names_the_engine() {
    for script in Script::ALL {
        assert!(script.text().starts_with("#!lua\n"), "{script:?}");
        assert_eq!(script.text().matches("'TIME'").count(), 1, "{script:?}");
    }
}

/// Values are arguments, never text: a server would otherwise keep a script per request.
#[test]
fn one_text_per_script_whatever_is_asked() {
    let texts: Vec<Vec<u8>> = [MINUTE, Span::SECOND]
        .iter()
        .map(|window| parts(&command(&batch(NEVER, &every_kind(*window))))[1].clone())
        .collect();
    assert_eq!(texts[0], texts[1]);
}

/// A command that waited too long before the script charges nothing, and reports the store's time.
#[test]
fn e10_e25_a_call_after_its_deadline_charges_nothing() {
    let mut rig = Rig::start_with(&["--enable-debug-command", "yes"]);
    for charge in every_kind(MINUTE) {
        let deadline = rig.now().after(Span::from_millis(20));
        let mut pipeline = Vec::new();
        tollgate_resp::write_request(&mut pipeline, &[b"DEBUG", b"SLEEP", b"0.05"]);
        pipeline.extend(command(&batch(deadline, &[charge])));
        assert_eq!(rig.send(&pipeline), RespValue::Text("OK".into()));
        let reply = batch(deadline, &[charge]).decode(&rig.send(b""));
        assert!(matches!(reply, Ok(BatchReply::Expired { now }) if now > deadline), "{reply:?}");
        assert_eq!(rig.size(), 0);
    }
}

#[test]
fn e10_e25_a_receipt_after_its_deadline_gives_nothing_back() {
    let mut rig = Rig::start();
    for charge in every_kind(MINUTE) {
        let is_slot = matches!(charge.ask, Ask::Hold(_));
        let charge = if is_slot { charge } else { Charge { ask: Ask::Consume(2), ..charge } };
        let first = outcomes(&rig.take(NEVER, &[charge]).expect("an answer"));
        let past = rig.now().before(Span::from_millis(1));
        let number = charge.bucket.0[0];
        let late = give_back(&mut rig, past, vec![receipt(&charge, &first[0], number)]);
        assert!(matches!(late, ReturnReply::Expired { .. }), "{late:?}");
        let again = give_back(&mut rig, NEVER, vec![receipt(&charge, &first[0], number)]);
        assert!(matches!(again, ReturnReply::Done { given: 1, .. }), "{charge:?}: {again:?}");
    }
}

/// The clock an hour back: a denied client waits no longer than a few windows, the reported wait is true, and the
/// bucket keeps to it.
#[test]
fn e12_e14_a_clock_that_steps_back_blocks_no_client_for_long() {
    let mut rig = Rig::start();
    let start = Time::from_secs(1_700_000_000);
    for charge in every_kind(MINUTE) {
        let one = |n: u64| match charge.ask {
            Ask::Hold(_) => Charge { ask: Ask::Hold(SlotId(u128::from(n))), ..charge },
            _ => charge,
        };
        for n in 0..9 {
            rig.take_at(start, &[one(n)]);
        }
        let back = start.before(Span::from_secs(3_600));
        let told = outcomes(&rig.take_at(back, &[one(99)]));
        assert!(told[0].remaining <= 3 && !told[0].allowed, "{told:?}");
        let Wait::For(wait) = told[0].wait else { panic!("{charge:?}: {told:?}") };
        assert!(wait <= Span::from_secs(180), "{charge:?}: waits {wait}");
        assert!(
            outcomes(&rig.take_at(back.after(wait), &[one(100)]))[0].allowed,
            "{charge:?}: waited {wait} for nothing"
        );
    }
}

/// The clock ahead: one fresh bucket, not more.
#[test]
fn e13_a_clock_that_steps_ahead_gives_one_bucket() {
    let mut rig = Rig::start();
    let start = Time::from_secs(1_700_000_000);
    for charge in every_kind(MINUTE).into_iter().filter(|charge| !matches!(charge.ask, Ask::Hold(_))) {
        let passes = |rig: &mut Rig, now| (0..20).filter(|_| outcomes(&rig.take_at(now, &[charge]))[0].allowed).count();
        let first = passes(&mut rig, start);
        let ahead = passes(&mut rig, start.after(Span::from_secs(7_200)));
        assert!(ahead <= first, "{charge:?}: {ahead} after {first}");
    }
}

/// Refused for memory before the first write, although this request makes seven buckets.
#[test]
fn e20_out_of_memory_writes_nothing() {
    let mut rig = Rig::start();
    let charges = every_kind(MINUTE);
    rig.client.call(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    rig.client.call(&["CONFIG", "SET", "maxmemory", "1"]);
    let reply = rig.send(&command(&batch(NEVER, &charges)));
    assert_eq!(reply.error_word(), Some(&b"OOM"[..]), "{reply:?}");
    rig.client.call(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(rig.size(), 0);
}

/// Foreign values, and the commands that create them.
const FOREIGN: [&[&str]; 14] = [
    &["SADD", "x"],
    &["HSET", "x", "y"],
    &["RPUSH", "hello, our world"],
    &["RPUSH", "seventeen letters", "thirteen long"],
    &["ZADD", "1", "x"],
    &["SET", ""],
    &["SET", "hello, our world"],
    &["SET", "0x1234567890123456"],
    &["SET", " 1700000000000000000"],
    &["SET", "1.5"],
    &["SET", "99999999999999999999"],
    &["SET", "\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}"],
    &["SET", "seventeen lettersseventeen letters"],
    &["SET", "\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}"],
];

/// A key of ours that holds something else: the request is decided as on an unused bucket, which replaces it.
#[test]
fn a_foreign_value_under_a_key_is_replaced_in_the_same_call() {
    let mut rig = Rig::start();
    let charges = every_kind(MINUTE);
    for foreign in FOREIGN {
        for charge in &charges {
            let [word, rest @ ..] = foreign else { unreachable!("all have a command") };
            // A list is a log, and a sorted set holds slots: foreign values of these types cannot be recognised.
            let fits = matches!((*word, charge.limit), ("ZADD", Limit::Concurrency(_)))
                || (rest.len() > 1 && *word == "RPUSH" && matches!(charge.limit, Limit::SlidingLog(_)));
            if fits {
                continue;
            }
            let other = Charge { bucket: Digest([99, 99]), ..*charge };
            for charges in [vec![*charge], vec![other, *charge]] {
                rig.client.succeed(&["FLUSHALL"]);
                rig.client.succeed(&[&[*word, &key(charge)], rest].concat());
                let reply = rig.take(NEVER, &charges).unwrap_or_else(|bad| panic!("{bad}: {foreign:?} {charge:?}"));
                let BatchReply::Answers { foreign: found, .. } = &reply else { panic!("{reply:?}") };
                assert_eq!(*found, 1, "{foreign:?} {charge:?}");
                for outcome in outcomes(&reply) {
                    assert!(outcome.allowed && outcome.used == 1, "{foreign:?} {charge:?}: {outcome:?}");
                }
                let again = outcomes(&rig.take(NEVER, &[*charge]).expect("an answer"));
                let used = if matches!(charge.limit, Limit::Concurrency(_)) { 1 } else { 2 };
                assert_eq!((again[0].allowed, again[0].used), (true, used), "{foreign:?} {charge:?}");
                assert!(rig.integer(&["PTTL", &key(charge)]) > 0, "{foreign:?} {charge:?}");
            }
        }
    }
}

/// Receipts for values that are not buckets give nothing back.
#[test]
fn a_foreign_value_takes_no_receipt() {
    let mut rig = Rig::start();
    for charge in every_kind(MINUTE) {
        let told = outcomes(&rig.take(NEVER, &[charge]).expect("an answer"));
        rig.client.succeed(&["DEL", &key(&charge)]);
        rig.client.succeed(&["SET", &key(&charge), "hello, our world"]);
        let given = give_back(&mut rig, NEVER, vec![receipt(&charge, &told[0], charge.bucket.0[0])]);
        assert!(matches!(given, ReturnReply::Done { given: 0, foreign: 1, .. }), "{charge:?}: {given:?}");
        assert_ne!(rig.integer(&["PTTL", &key(&charge)]), -1, "{charge:?}: gone, or an empty bucket");
    }
}

/// F32: every touch of a bucket that lost its expiry sets it again, also if the request is denied.
#[test]
fn f32_a_refused_touch_sets_an_expiry_that_was_removed() {
    let mut rig = Rig::start();
    for charge in every_kind(MINUTE) {
        let fill = match charge.ask {
            Ask::Hold(_) => (1..=3).map(|id| Ask::Hold(SlotId(id))).collect(),
            _ => vec![Ask::Consume(1); 5],
        };
        for ask in fill {
            rig.take(NEVER, &[Charge { ask, ..charge }]).expect("an answer");
        }
        let more =
            Charge { ask: if let Ask::Hold(_) = charge.ask { Ask::Hold(SlotId(9)) } else { charge.ask }, ..charge };
        let before = rig.integer(&["PEXPIRETIME", &key(&charge)]);
        for charges in [vec![more], vec![more, Charge { bucket: Digest([77, 77]), ..more }]] {
            rig.client.succeed(&["PERSIST", &key(&charge)]);
            assert!(!outcomes(&rig.take(NEVER, &charges).expect("an answer"))[0].allowed, "{charge:?}");
            assert_eq!(rig.integer(&["PEXPIRETIME", &key(&charge)]), before, "{charge:?}");
        }
    }
}

/// Two receipts with one number, in one call and in two, and a receipt for slots that names none.
#[test]
fn a_receipt_is_spent_once() {
    let mut rig = Rig::start();
    let charges = every_kind(MINUTE);
    for charge in charges.iter().filter(|charge| !matches!(charge.ask, Ask::Hold(_))) {
        let first = outcomes(&rig.take(NEVER, &[Charge { ask: Ask::Consume(2), ..*charge }]).expect("an answer"));
        let number = charge.bucket.0[0];
        let both = vec![receipt(charge, &first[0], number), receipt(charge, &first[0], number)];
        let given = give_back(&mut rig, NEVER, both);
        assert!(matches!(given, ReturnReply::Done { given: 1, .. }), "{charge:?}: {given:?}");
        let given = give_back(&mut rig, NEVER, vec![receipt(charge, &first[0], number)]);
        assert!(matches!(given, ReturnReply::Done { given: 0, .. }), "{charge:?}: {given:?}");
    }
    let slot = Charge { ask: Ask::Hold(SlotId(0)), ..charges[5] };
    let first = outcomes(&rig.take(NEVER, &[slot]).expect("an answer"));
    let without_slot = Receipt { slot: None, ..receipt(&slot, &first[0], 77) };
    assert!(matches!(give_back(&mut rig, NEVER, vec![without_slot]), ReturnReply::Done { given: 0, .. }));
    assert_eq!(rig.integer(&["ZCARD", &key(&slot)]), 1);
}

/// Ten million buckets are to fit into 1.5 GB.
#[test]
fn buckets_are_small() {
    let mut rig = Rig::start();
    let strings = every_kind(MINUTE)
        .into_iter()
        .filter(|charge| !matches!(charge.limit, Limit::SlidingLog(_) | Limit::Concurrency(_)));
    for (charge, most) in strings.zip([72, 72, 104, 104, 128]) {
        outcomes(&rig.take(NEVER, &[charge]).expect("an answer"));
        let bytes = rig.integer(&["MEMORY", "USAGE", &key(&charge)]);
        assert!(bytes <= most, "{:?} takes {bytes} bytes", charge.limit.kind());
    }
}

/// Counts beyond 2^32 are stored exactly, in more bytes.
#[test]
fn large_counts_are_exact() {
    let mut rig = Rig::start();
    let now = Time::from_secs(1_700_000_000);
    for charge in every_kind(MINUTE).into_iter().skip(2).take(3) {
        let force = |n| [Charge { ask: Ask::Force(n), ..charge }];
        assert_eq!(outcomes(&rig.take_at(now, &force(u64::MAX - 3)))[0].used, u64::MAX - 3);
        assert_eq!(outcomes(&rig.take_at(now, &force(2)))[0].used, u64::MAX - 1);
        let last = outcomes(&rig.take_at(now, &force(9)));
        assert_eq!((last[0].used, last[0].granted), (u64::MAX, 1), "{charge:?}");
    }
}

/// An empty batch returns only the time.
#[test]
fn an_empty_batch_tells_the_time() {
    let mut rig = Rig::start();
    let batch = Batch::new(NEVER, Time::ZERO);
    assert!(batch.is_empty());
    let reply = batch.decode(&rig.send(&command(&batch)));
    assert!(matches!(reply, Ok(BatchReply::Answers { ref answers, .. }) if answers.is_empty()), "{reply:?}");
}
