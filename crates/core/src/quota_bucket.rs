//! A bucket of a quota outside of its store: what is written down so that usage survives a restart.

use crate::{Digest, QuotaUse};

/// The bucket of a quota, with its usage and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaBucket {
    /// The bucket.
    pub bucket: Digest,
    /// Its usage; the default if the bucket is unused again, because an operator reset it or all was refunded.
    pub usage: QuotaUse,
    /// The [id](crate::Owner::id) of its owner.
    pub owner: u32,
}
