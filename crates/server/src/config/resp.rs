//! RESP, as it was configured.

use std::path::PathBuf;

use crate::net::Address;

/// Settings of the RESP listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RespSettings {
    /// Where RESP is served; nowhere if none.
    pub address: Option<Address>,
    /// The password that callers must give with AUTH or HELLO.
    pub password_file: Option<PathBuf>,
}
