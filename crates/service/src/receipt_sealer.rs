//! Signs receipts that callers keep and present again, so that they can be neither forged nor changed.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign, verify};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tollgate_core::Time;
use tollgate_engine::Reservation;

/// Prefix of every receipt, recognizable in logs.
const PREFIX: &str = "tgr_";
const SIGNATURE_BYTES: usize = 32;

/// Signs and verifies receipts.
#[derive(Debug)]
pub struct Sealer {
    key: Key,
    /// The process whose buckets a receipt is about, while buckets live in memory: a receipt of another process with
    /// the same secret would refund here what was charged there.
    home: u64,
    /// True if buckets are shared: any process with the secret can settle what was charged to them.
    shares: bool,
}

/// The home of receipts about buckets that all processes share.
const EVERYWHERE: u64 = 0;

/// Earlier versions told receipts of slots from others by this word.
const KIND: u64 = 1;

/// Why a receipt is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptRejection {
    /// The signature is wrong.
    Unknown,
    /// It is about the buckets of another process.
    Foreign,
}

/// A verified receipt.
#[derive(Debug)]
pub struct OpenedReceipt {
    /// What was reserved.
    pub reservation: Reservation,
    /// When it was made.
    pub made: Time,
}

impl Sealer {
    /// A sealer under `secret`, for buckets that live at `home`.
    pub fn new(secret: &[u8], home: u64) -> Sealer {
        let own = sign(&Key::new(HMAC_SHA256, secret), b"tollgate receipts"); // no other use of the secret shares it
        Sealer { key: Key::new(HMAC_SHA256, own.as_ref()), home: home.max(EVERYWHERE + 1), shares: false }
    }

    /// A sealer for shared buckets. What `home` charged locally while the store was away is settled there alone.
    pub fn for_all(secret: &[u8], home: u64) -> Sealer {
        Sealer { shares: true, ..Sealer::new(secret, home) }
    }

    /// A reservation as signed text.
    pub fn seal(&self, reservation: Reservation, made: Time) -> String {
        let home = if self.shares && !reservation.is_local() { EVERYWHERE } else { self.home };
        let mut bytes = [made.nanos(), home, KIND].map(u64::to_le_bytes).concat();
        reservation.pack(&mut bytes);
        let signature = sign(&self.key, &bytes);
        bytes.extend_from_slice(signature.as_ref());
        let mut text = PREFIX.to_owned();
        URL_SAFE_NO_PAD.encode_string(&bytes, &mut text);
        text
    }

    /// Verifies a receipt and returns what was sealed.
    pub fn open(&self, text: &str) -> Result<OpenedReceipt, ReceiptRejection> {
        let (opened, home) = self.read(text).ok_or(ReceiptRejection::Unknown)?;
        match home == self.home || (home == EVERYWHERE && self.shares) {
            true => Ok(opened),
            false => Err(ReceiptRejection::Foreign),
        }
    }

    fn read(&self, text: &str) -> Option<(OpenedReceipt, u64)> {
        let text = text.strip_prefix(PREFIX)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (signed, signature) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE_BYTES)?)?;
        verify(&self.key, signed, signature).ok()?;
        let (made, rest) = signed.split_first_chunk()?;
        let (home, rest) = rest.split_first_chunk()?;
        let (_, packed) = rest.split_first_chunk::<8>()?;
        let made = Time::from_nanos(u64::from_le_bytes(*made));
        Some((OpenedReceipt { reservation: Reservation::unpack(packed)?, made }, u64::from_le_bytes(*home)))
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
    fn receipts_about_shared_buckets_open_wherever_these_are_shared() {
        let [here, there] = [1, 2].map(|home| Sealer::for_all(b"a secret of some length", home));
        let text = sealed(&here);
        assert!(there.open(&text).is_ok());
        let alone = Sealer::new(b"a secret of some length", 1);
        assert_eq!(alone.open(&text).unwrap_err(), ReceiptRejection::Foreign, "its buckets are its own");
        let elsewhere = there.open(&sealed(&alone));
        assert_eq!(elsewhere.unwrap_err(), ReceiptRejection::Foreign, "and stay so");
    }

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let sealer = Sealer::new(b"a secret of some length", 1);
        let text = sealed(&sealer);
        let open = |text: &str| sealer.open(text);
        let opened = open(&text).unwrap();
        assert_eq!((opened.made, opened.reservation.cost()), (Time::from_secs(7), 3));
        let elsewhere = Sealer::new(b"a secret of some length", 2).open(&text);
        assert_eq!(elsewhere.unwrap_err(), ReceiptRejection::Foreign, "another process has other buckets");
        let other = Sealer::new(b"another secret entirely", 1).open(&text);
        assert_eq!(other.unwrap_err(), ReceiptRejection::Unknown);
        for place in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last character carries spare bits, which decoding refuses when they are set.
            assert!(open(&changed).is_err(), "changed at {place}");
            assert!(open(&text[..place]).is_err(), "cut at {place}");
        }
        for other in ["", "tgr_", "tgr_AAAA", &"A".repeat(100_000), &format!("{text}AAAA")] {
            assert!(open(other).is_err());
        }
    }
}
