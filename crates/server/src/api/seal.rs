//! Receipts that leave the process and come back: signed, so that nobody can make or change one.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign, verify};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tollgate_core::{Span, Time};
use tollgate_engine::Reservation;

/// What every receipt begins with: people find it in logs and know what it is.
const PREFIX: &str = "tgr_";
/// Longest receipt that is looked at: sixteen rules' worth, generously.
const TEXT_BYTES_MAX: usize = 8 << 10;
const SIGNATURE_BYTES: usize = 32;
/// How long a reservation may be settled. After that its estimate stays.
pub const SETTLE_WITHIN: Span = Span::from_secs(24 * 3600);

/// Signs and checks.
#[derive(Debug)]
pub struct Sealer {
    key: Key,
}

/// A receipt that came back.
#[derive(Debug)]
pub struct Opened {
    /// What was reserved.
    pub reservation: Reservation,
    /// When.
    pub made: Time,
}

impl Sealer {
    /// A sealer under `secret`. Whoever knows the same secret can open what it sealed.
    pub fn new(secret: &[u8]) -> Sealer {
        let own = sign(&Key::new(HMAC_SHA256, secret), b"tollgate receipts"); // no other use of the secret shares it
        Sealer { key: Key::new(HMAC_SHA256, own.as_ref()) }
    }

    /// A reservation as text.
    pub fn seal(&self, reservation: Reservation, made: Time) -> String {
        let mut bytes = made.nanos().to_le_bytes().to_vec();
        reservation.pack(&mut bytes);
        let signature = sign(&self.key, &bytes);
        bytes.extend_from_slice(signature.as_ref());
        let mut text = PREFIX.to_owned();
        URL_SAFE_NO_PAD.encode_string(&bytes, &mut text);
        text
    }

    /// What was sealed; `None` for anything that this sealer did not seal.
    pub fn open(&self, text: &str) -> Option<Opened> {
        let text = text.strip_prefix(PREFIX).filter(|text| text.len() <= TEXT_BYTES_MAX)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (signed, signature) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE_BYTES)?)?;
        verify(&self.key, signed, signature).ok()?;
        let (made, packed) = signed.split_first_chunk()?;
        let made = Time::from_nanos(u64::from_le_bytes(*made));
        Some(Opened { reservation: Reservation::unpack(packed)?, made })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::{Attribute, ManualClock, Request};
    use tollgate_engine::{Engine, rules_from_yaml};

    fn sealed(sealer: &Sealer) -> String {
        let rules = rules_from_yaml("rules: [{ key_by: user_id, limit: { requests: 9, window: 1m } }]").unwrap();
        let engine = Engine::on_clock(rules, ManualClock::at(Time::from_secs(1_700_000_000)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (_, reservation) = runtime.block_on(engine.reserve(&Request::new().with(Attribute::UserId, "1").cost(3)));
        sealer.seal(reservation.unwrap(), Time::from_secs(7))
    }

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let sealer = Sealer::new(b"a secret of some length");
        let text = sealed(&sealer);
        let opened = sealer.open(&text).unwrap();
        assert_eq!((opened.made, opened.reservation.cost()), (Time::from_secs(7), 3));
        assert!(Sealer::new(b"another secret entirely").open(&text).is_none());
        for place in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last character carries spare bits, which decoding refuses when they are set.
            assert!(sealer.open(&changed).is_none(), "changed at {place}");
            assert!(sealer.open(&text[..place]).is_none(), "cut at {place}");
        }
        for other in ["", "tgr_", "tgr_AAAA", &"A".repeat(100_000), &format!("{text}AAAA")] {
            assert!(sealer.open(other).is_none());
        }
    }
}
