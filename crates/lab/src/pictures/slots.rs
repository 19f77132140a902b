//! Concurrency: slots in use, and holders that die without a release.

use tollgate_core::{Ask, Concurrency, Limit, SlotId, Span};
use tollgate_testkit::Bucket;

use super::Picture;
use super::load::{END_MS, moment, shared};
use super::measure::{counted, curve, most};
use crate::plot::{Plot, Scale, stacked};

const SLOTS: u64 = 5;
const TTL_MS: u64 = 1_000;
/// How long a request takes.
const WORK_MS: u64 = 300;
/// One holder in this many dies and releases nothing.
const DIES: usize = 5;

/// The shared load on slots.
pub(super) struct SlotRun {
    pub offered: Vec<u64>,
    pub admitted: Vec<u64>,
    /// Slots in use, at every hundredth of a second.
    in_use: Vec<(u64, u64)>,
    died: usize,
}

pub(super) fn hold() -> SlotRun {
    let limit = Limit::Concurrency(Concurrency::new(SLOTS, Span::from_millis(TTL_MS)).expect("a valid limit"));
    let mut bucket = Bucket::unused(limit.kind());
    let offered = shared();
    let mut due = offered.iter().copied().peekable();
    let (mut admitted, mut in_use, mut died) = (Vec::new(), Vec::new(), 0);
    let mut at_work = Vec::new();
    for now in (0..=END_MS).step_by(5) {
        at_work.retain(|(until, id)| {
            let works = now < *until;
            if !works {
                bucket.release(&limit, moment(now), *id);
            }
            works
        });
        while let Some(at) = due.next_if(|at| *at <= now) {
            let id = SlotId(u128::from(at));
            if bucket.take(&limit, moment(at), &Ask::Hold(id), false).allowed {
                admitted.push(at);
                match admitted.len() % DIES {
                    0 => died += 1,
                    _ => at_work.push((at + WORK_MS, id)),
                }
            }
        }
        in_use.push((now, bucket.peek(&limit, moment(now), 1).used));
    }
    SlotRun { offered, admitted, in_use, died }
}

pub(super) fn draw() -> Picture {
    let SlotRun { offered, admitted, in_use, died } = hold();
    let flow = Plot::new("Concurrency: 5 slots, each request takes 300 ms, every fifth holder dies")
        .y("requests", Scale::Linear)
        .steps("offered", counted(&offered, END_MS))
        .muted()
        .steps("admitted", counted(&admitted, END_MS));
    let slots = Plot::new("Slots in use")
        .x("seconds", Scale::Linear)
        .y("slots", Scale::Linear)
        .steps("in use", curve(&in_use))
        .level("slots", SLOTS as f64);
    Picture {
        name: "concurrency",
        caption: format!(
            "{} of {} admitted, never more than {} at a time; {died} holders died, and their slots came back after \
             {TTL_MS} ms.",
            admitted.len(),
            offered.len(),
            most(&in_use)
        ),
        svg: stacked(&[flow.height(270.0), slots.height(240.0)]),
    }
}
