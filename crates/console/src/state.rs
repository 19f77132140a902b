//! What all pages share: the two APIs, the key of sessions, the clock.

use std::sync::Arc;

use tollgate_admin::AdminApi;
use tollgate_core::Clock;
use tollgate_http::DataApi;
use tollgate_web::HeaderLookup;

use crate::live_slots::LiveSlots;
use crate::session::{ConsoleSession, SessionSealer};

/// What all pages share.
pub(crate) struct ConsoleState {
    pub(crate) admin: Arc<AdminApi>,
    pub(crate) sessions: SessionSealer,
    pub(crate) data_api: DataApi,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) live: LiveSlots,
}

impl ConsoleState {
    /// The session in the field `Cookie`.
    pub(crate) fn session(&self, cookies: HeaderLookup<'_>) -> Option<ConsoleSession> {
        match cookies {
            HeaderLookup::Once(cookies) => self.sessions.open(cookies, self.clock.wall()),
            HeaderLookup::Absent | HeaderLookup::Repeated => None,
        }
    }
}
