//! A store may drop a bucket that is fresh, so it must be indistinguishable from an unused one.

use tollgate_core::{Ask, Limit, SlotId, Time};

use crate::{Bucket, SpecOutcome};

/// Sends the same requests to both buckets, now and later, and compares the outcomes. Passes if the bucket is not fresh.
pub(super) fn is_as_unused(bucket: &Bucket, limit: &Limit, now: Time) -> Result<(), String> {
    if !bucket.is_fresh(now) {
        return Ok(());
    }
    let (mut dropped, mut kept) = (Bucket::unused(limit.kind()), bucket.clone());
    let (most, third) = (limit.capacity(), limit.window().nanos() / 3);
    let asks = [
        (0, Ask::Peek(most)),
        (0, Ask::UpTo(most / 2 + 1)),
        (0, Ask::Hold(SlotId(77))),
        (third, Ask::Consume(1)),
        (third, Ask::Peek(most / 2)),
        (third.saturating_add(1), Ask::UpTo(most)),
        (third, Ask::Peek(1)),
    ];
    let mut then = now.nanos();
    for (after, ask) in asks {
        then = then.saturating_add(after);
        let [dropped, kept] = [&mut dropped, &mut kept]
            .map(|bucket| SpecOutcome::from(&bucket.take(limit, Time::from_nanos(then), &ask, false)));
        if dropped != kept {
            return Err(format!("called fresh at {now:?}, yet {ask:?} at {then} is told {kept:?}, unused {dropped:?}"));
        }
    }
    Ok(())
}
