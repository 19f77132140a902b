//! Password and TLS flags of a store, as in `tollgate serve`.

use std::path::PathBuf;

use tollgate_config::StoreSettings;

/// How to connect to a store.
#[derive(Debug, clap::Args)]
pub struct AccessArgs {
    /// Read the store password from this file instead of the URL
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_PASSWORD_FILE", hide_env_values = true)]
    store_password_file: Option<PathBuf>,
    /// Trust the CA certificates in this file (PEM) instead of the system's
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_CA", hide_env_values = true)]
    store_ca: Option<PathBuf>,
    /// Client certificate (PEM), for stores that require one
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_CERT", hide_env_values = true, requires = "store_key")]
    store_cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_KEY", hide_env_values = true, requires = "store_cert")]
    store_key: Option<PathBuf>,
    /// Do not verify host names in certificates; their CA is still verified
    #[arg(long)]
    store_skip_hostname: bool,
    /// Accept any certificate; for tests
    #[arg(long)]
    store_insecure_tls: bool,
}

impl AccessArgs {
    /// The flags as settings of a server.
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
