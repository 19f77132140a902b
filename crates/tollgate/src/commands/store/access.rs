//! Flags about password and TLS of a store, as `tollgate serve` has them.

use std::path::PathBuf;

use tollgate_config::StoreSettings;

/// How a store is connected to.
#[derive(Debug, clap::Args)]
pub struct AccessArgs {
    /// The password of the store, so that its URL needs none
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_PASSWORD_FILE", hide_env_values = true)]
    store_password_file: Option<PathBuf>,
    /// Trust the authorities in this file (PEM) instead of this machine's
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_CA", hide_env_values = true)]
    store_ca: Option<PathBuf>,
    /// Show this certificate (PEM) to a store that wants one
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_CERT", hide_env_values = true, requires = "store_key")]
    store_cert: Option<PathBuf>,
    /// The private key of --store-cert (PEM)
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_KEY", hide_env_values = true, requires = "store_cert")]
    store_key: Option<PathBuf>,
    /// Do not compare names in certificates with hosts; who signed them is still checked
    #[arg(long)]
    store_skip_hostname: bool,
    /// Take any certificate; for tests
    #[arg(long)]
    store_insecure_tls: bool,
}

impl AccessArgs {
    /// The same as settings of a server.
    pub fn settings(&self) -> StoreSettings {
        StoreSettings {
            password_file: self.store_password_file.clone(),
            ca: self.store_ca.clone(),
            cert: self.store_cert.clone(),
            key: self.store_key.clone(),
            skip_hostname: self.store_skip_hostname,
            insecure_tls: self.store_insecure_tls,
            ..StoreSettings::default()
        }
    }
}
