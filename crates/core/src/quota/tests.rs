//! What a quota admits, by a small calendar.

use super::*;

/// Days of a calendar: 100 ns each, except the fourth, which has 130.
const BOUNDS: [u64; 8] = [0, 1_000, 1_100, 1_200, 1_300, 1_430, 1_530, 1_630];

fn quota_on(day: usize, amount: u64) -> Quota {
    let bound = |day: usize| Time::from_nanos(BOUNDS[day]);
    Quota::new(amount, bound(day), bound(day + 1), bound(day + 2)).unwrap()
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn take(limit: &Quota, state: &mut QuotaUse, now: u64, cost: u64) -> Outcome {
    let ask = Ask::Consume(cost);
    let allowed = limit.admits(state, at(now), &ask);
    let effect = if allowed { Effect::Charge } else { Effect::Refuse };
    let granted = limit.record(state, at(now), &ask, effect);
    limit.view(state, at(now), &ask, allowed, granted)
}

#[test]
fn counts_until_the_period_ends() {
    let (limit, mut state) = (quota_on(1, 10), QuotaUse::default());
    let first = take(&limit, &mut state, 1_020, 7);
    assert_eq!((first.allowed, first.limit, first.remaining, first.used), (true, 10, 3, 7));
    assert_eq!((first.reset_after, first.stamp), (Span::from_nanos(80), at(1_100)));
    let refused = take(&limit, &mut state, 1_099, 4);
    assert_eq!((refused.allowed, refused.wait), (false, Wait::For(Span::from_nanos(1))));
    assert!(take(&limit, &mut state, 1_100, 4).allowed, "the node is still in the old period");
    assert_eq!(state.end(), at(1_200), "the store is not");
}

#[test]
fn nodes_whose_clocks_differ_count_in_the_same_period() {
    let mut state = QuotaUse::default();
    for day in 1..=3 {
        assert_eq!(take(&quota_on(day, 10), &mut state, 1_150, 3).stamp, at(1_200), "a node in day {day}");
    }
    assert!(!take(&quota_on(2, 10), &mut state, 1_150, 3).allowed);
}

#[test]
fn a_node_whose_clock_is_wrong_by_periods_neither_resets_nor_locks_a_bucket() {
    for day in [1, 5] {
        let (limit, mut state) = (quota_on(day, 10), QuotaUse::default());
        let now = if day == 1 { 1_520 } else { 1_020 };
        assert!(take(&limit, &mut state, now, 10).allowed);
        let refused = take(&limit, &mut state, now + 5, 1);
        let left = limit.window().minus(Span::from_nanos(5));
        assert_eq!((refused.allowed, refused.wait), (false, Wait::For(left)));
        assert!(take(&limit, &mut state, now + limit.window().nanos(), 1).allowed);
    }
    let mut state = QuotaUse::default();
    take(&quota_on(5, 10), &mut state, 1_440, 10);
    assert!(!take(&quota_on(1, 10), &mut state, 1_441, 1).allowed);
    assert_eq!(state.end(), at(1_530), "a period that other nodes know stays");
}

#[test]
fn a_changed_calendar_keeps_usage() {
    let mut state = QuotaUse::default();
    take(&quota_on(1, 10), &mut state, 1_020, 6);
    let moved = Quota::new(10, at(950), at(1_050), at(1_150)).unwrap();
    let peeked = moved.view(&state, at(1_030), &Ask::Peek(1), true, 0);
    assert_eq!((peeked.used, peeked.reset_after, peeked.stamp), (6, Span::from_nanos(20), at(1_100)));
    assert_eq!(take(&moved, &mut state, 1_030, 1).used, 7);
    assert_eq!(state.end(), at(1_050));
    assert_eq!(take(&moved, &mut state, 1_060, 1).used, 1);
}

#[test]
fn carries_over_what_the_last_period_left_and_no_more() {
    let limit = |day| quota_on(day, 10).with_rollover(4);
    let mut state = QuotaUse::default();
    take(&limit(1), &mut state, 1_020, 8);
    let second = take(&limit(2), &mut state, 1_110, 1);
    assert_eq!((second.limit, second.remaining), (12, 11), "two were left");
    let third = take(&limit(3), &mut state, 1_210, 14);
    assert_eq!((third.limit, third.remaining), (14, 0), "ten were left of its own, at most four are carried");
    let mut idle = state;
    assert_eq!(take(&limit(4), &mut state, 1_310, 1).limit, 10, "carried units were spent first, then all others");
    assert_eq!(take(&limit(5), &mut idle, 1_440, 1).limit, 10, "a period without charges carries nothing");
}

#[test]
fn carried_units_are_not_carried_again() {
    let limit = |day| quota_on(day, 10).with_rollover(20);
    let mut state = QuotaUse::default();
    take(&limit(1), &mut state, 1_020, 1);
    assert_eq!(take(&limit(2), &mut state, 1_110, 1).limit, 19);
    assert_eq!(take(&limit(3), &mut state, 1_210, 1).limit, 20);
}

#[test]
fn a_bucket_that_may_hand_on_units_survives_the_longer_period_that_follows() {
    let limit = quota_on(3, 10).with_rollover(4);
    let mut state = QuotaUse::default();
    take(&limit, &mut state, 1_250, 1);
    assert!(!state.is_fresh(at(1_429)));
    assert_eq!(take(&quota_on(4, 10).with_rollover(4), &mut state.clone(), 1_429, 1).limit, 14);
    assert!(state.is_fresh(at(1_300).after(limit.keep())));
    let mut plain = QuotaUse::default();
    take(&quota_on(3, 10), &mut plain, 1_250, 1);
    assert!(plain.is_fresh(at(1_300)));
    assert_eq!(take(&quota_on(4, 10).with_rollover(4), &mut plain, 1_310, 1).limit, 10, "it may have been dropped");
}

#[test]
fn an_unused_bucket_carries_nothing_into_the_first_period_of_time() {
    let limit = quota_on(0, 10).with_rollover(4);
    assert_eq!(limit.view(&QuotaUse::default(), at(5), &Ask::Peek(1), true, 0).limit, 10);
}

#[test]
fn overdraft_is_admitted_but_not_advertised() {
    let (limit, mut state) = (quota_on(1, 10).with_overdraft(2), QuotaUse::default());
    assert_eq!(take(&limit, &mut state, 1_000, 9).remaining, 1);
    let over = take(&limit, &mut state, 1_000, 3);
    assert_eq!((over.allowed, over.limit, over.remaining, over.used), (true, 10, 0, 12));
    assert!(!take(&limit, &mut state, 1_000, 1).allowed);
    assert_eq!(take(&limit, &mut state, 1_000, 13).wait, Wait::Never);
    assert_eq!(take(&limit, &mut state, 1_100, 1).used, 1, "the next period starts without debt");
}

#[test]
fn an_amount_of_zero_refuses_everything() {
    let limit = quota_on(2, 0).with_overdraft(5).with_rollover(5).with_grant(5);
    let mut state = QuotaUse::new(at(1_100), 0, 5, Span::from_nanos(200));
    let refused = take(&limit, &mut state, 1_110, 1);
    assert_eq!((refused.allowed, refused.limit, refused.wait), (false, 0, Wait::Never));
}

#[test]
fn a_grant_counts_in_the_proposed_period_only() {
    let limit = |day| quota_on(day, 10).with_grant(5);
    let mut state = QuotaUse::default();
    let first = take(&limit(1), &mut state, 1_020, 12);
    assert_eq!((first.allowed, first.limit, first.remaining), (true, 15, 3));
    assert_eq!(take(&limit(2), &mut state, 1_030, 1).limit, 10, "a node that is in the next period already");
    assert_eq!(take(&limit(1), &mut state, 1_100, 1).limit, 10, "a node that is still in the last period");
    assert_eq!(take(&limit(0), &mut state, 5_000, 1).limit, 10, "a node whose clock is wrong");
    let refused = take(&quota_on(1, 10).with_grant(u64::MAX), &mut QuotaUse::default(), 990, 11);
    assert_eq!(refused.wait, Wait::For(Span::from_nanos(10)), "the proposed period is next");
}

#[test]
fn a_grant_is_spent_last_and_never_handed_on() {
    let limit = |day| quota_on(day, 10).with_rollover(4);
    let (mut state, mut without) = (QuotaUse::default(), QuotaUse::default());
    take(&limit(1).with_grant(5), &mut state, 1_020, 8);
    take(&limit(1), &mut without, 1_020, 8);
    assert_eq!(state, without, "nothing of it is stored");
    assert_eq!(take(&limit(2).with_grant(5), &mut state, 1_110, 17).limit, 17, "two are carried, five granted");
    assert_eq!(take(&limit(3), &mut state, 1_210, 1).limit, 10, "all units of the amount were used");
}

#[test]
fn a_grant_for_a_lifetime() {
    let (limit, mut state) = (Quota::lifetime(5), QuotaUse::default());
    take(&limit, &mut state, 1_000, 5);
    assert!(!take(&limit, &mut state, 1_001, 1).allowed);
    assert_eq!(take(&limit.with_grant(3), &mut state, 1_001, 1).remaining, 2);
    assert!(!take(&limit, &mut state, 1_002, 1).allowed, "it was taken back");
}

#[test]
fn a_share_of_a_quota_has_a_share_of_the_grant() {
    let limit = crate::Limit::Quota(quota_on(1, 10).with_grant(5));
    let grant = |limit| if let crate::Limit::Quota(quota) = limit { quota.grant() } else { 0 };
    assert_eq!((grant(limit.share(2)), grant(limit.times(10))), (3, 0));
}

#[test]
fn a_lifetime_quota_never_comes_back() {
    let (limit, mut state) = (Quota::lifetime(5), QuotaUse::default());
    take(&limit, &mut state, 1_000, 5);
    let refused = take(&limit, &mut state, Quota::FOREVER.nanos() - 1, 1);
    assert_eq!((refused.allowed, refused.wait, refused.next_unit_after), (false, Wait::Never, None));
    assert!(!state.is_fresh(at(Quota::FOREVER.nanos() - 1)));
}

#[test]
fn refunds_find_the_period_of_their_charge() {
    let (limit, mut state) = (quota_on(1, 10), QuotaUse::default());
    let stamp = take(&limit, &mut state, 1_020, 6).stamp;
    assert_eq!(limit.refund(&mut state, at(1_030), 2, Some(stamp)), 2);
    assert_eq!(limit.refund(&mut state, at(1_030), 9, None), 4);
    assert!(state.is_fresh(at(1_030)));
    take(&limit, &mut state, 1_110, 6);
    assert_eq!(limit.refund(&mut state, at(1_120), 6, Some(stamp)), 0, "the period is over");
}

#[test]
fn a_clock_that_steps_back_does_not_lock_a_bucket() {
    let (limit, mut state) = (quota_on(3, 10), QuotaUse::default());
    take(&limit, &mut state, 1_250, 10);
    let refused = take(&limit, &mut state, 1_150, 1);
    assert_eq!((refused.allowed, refused.wait), (false, Wait::For(Span::from_nanos(50))));
    assert!(take(&limit, &mut state, 1_200, 1).allowed);
}

#[test]
fn bounds_that_are_no_periods_are_rejected() {
    let new = |start, end, next| Quota::new(1, at(start), at(end), at(next)).map(|quota| quota.amount());
    assert_eq!(new(5, 5, 9), Err(LimitError::ZeroWindow));
    assert_eq!(new(1, 5, 5), Err(LimitError::ZeroWindow));
    assert_eq!(new(1, 5, 4), Err(LimitError::ZeroWindow));
    assert_eq!(new(1, 5, 1 << 63), Err(LimitError::TooLong));
    assert_eq!(new(0, i64::MAX as u64, i64::MAX as u64), Ok(1));
}

#[test]
fn a_quota_does_not_enlarge_a_charge() {
    assert!(size_of::<Quota>() <= size_of::<crate::Gcra>());
    assert_eq!(size_of::<crate::Limit>(), 64);
}

#[test]
fn no_cost_overflows() {
    let most = u64::MAX;
    let limit = quota_on(1, most).with_overdraft(most).with_rollover(most).with_grant(most);
    let mut state = QuotaUse::default();
    assert!(take(&limit, &mut state, 1_000, u64::MAX).allowed);
    assert!(!take(&limit, &mut state, 1_000, 1).allowed);
    assert_eq!(limit.record(&mut state, at(1_000), &Ask::Force(9), Effect::Force), 0);
    let one_left = quota_on(2, u64::MAX).with_rollover(u64::MAX);
    assert!(take(&one_left, &mut QuotaUse::new(at(1_100), 1, 0, Span::from_nanos(200)), 1_100, u64::MAX).allowed);
}
