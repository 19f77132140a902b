//! A soft limit: how often the unit at each place is refused, over many keys.

use tollgate_core::{Ask, Charge, Digest, FixedWindow, KeyHasher, Limit, Secret, Soft, Span};
use tollgate_testkit::Bucket;

use super::Picture;
use super::load::START;
use crate::plot::{Plot, Scale};

const LIMIT: u64 = 100;
/// `soft: 20%`
const EXCESS: u64 = 20;
const KEYS: u64 = 4_000;
/// Each key asks for so much more than the limit.
const BEYOND: u64 = 25;

pub(super) fn draw() -> Picture {
    let limit = Limit::FixedWindow(FixedWindow::new(LIMIT, Span::from_secs(60)).expect("a valid limit"));
    let passed: Vec<u64> = (0..KEYS).map(|key| hammer(digest(key), limit)).collect();
    let refused = |place: u64| passed.iter().filter(|passed| **passed < place).count() as f64 / KEYS as f64;
    let promised = |place: u64| place.saturating_sub(LIMIT).min(EXCESS) as f64 / EXCESS as f64;
    let places = || LIMIT - 5..=LIMIT + BEYOND;
    let beyond = |place: u64| place as f64 - LIMIT as f64;
    let off = places().map(|place| (refused(place) - promised(place)).abs()).fold(0.0, f64::max);
    let plot = Plot::new("Soft limit of 100, soft: 20%: how often the unit at limit + k is refused")
        .x("k, units beyond the limit", Scale::Linear)
        .y("share of keys refused", Scale::Linear)
        .line("promised: k / 20", [-5.0, 0.0, 20.0, 25.0].map(|k| (k, (k / 20.0_f64).clamp(0.0, 1.0))))
        .dots("measured, 4,000 keys", places().map(|place| (beyond(place), refused(place))));
    let (least, most) = (passed.iter().min().unwrap_or(&0), passed.iter().max().unwrap_or(&0));
    Picture {
        name: "soft-limit",
        caption: format!(
            "{KEYS} keys were admitted between {least} and {most} units each; the share refused is off the promised one \
             by at most {off:.3}."
        ),
        svg: plot.height(340.0).to_svg(),
    }
}

/// How much passes for one key that asks again and again within one window.
fn hammer(bucket: Digest, limit: Limit) -> u64 {
    let charge = Charge { soft: Some(Soft { excess: EXCESS, seed: 1 }), ..Charge::new(bucket, limit, 1) };
    let mut state = Bucket::unused(limit.kind());
    let asked =
        (0..LIMIT + BEYOND).filter(|_| state.take(&charge.limit_at(START), START, &Ask::Consume(1), false).allowed);
    asked.count() as u64
}

fn digest(key: u64) -> Digest {
    let mut hasher = KeyHasher::new(Secret::new([7; 16]));
    hasher.word(key);
    hasher.finish()
}
